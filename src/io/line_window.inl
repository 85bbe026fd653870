// SPDX-License-Identifier: MIT
// The body of line_window.cpp, compiled once per instruction set. POLYAD_AVX2 is 1 inside the AVX2 copy.

/// Bit i is set when p[i] is no digit, for i < bytes (32 or 64); likewise for p[i] == separator. The other bits are 0.
template <unsigned bytes>
inline void classify(const char* p, char separator, std::uint64_t& others, std::uint64_t& separators) {
  others = 0;
  separators = 0;
#if POLYAD_AVX2
  const __m256i zero = _mm256_set1_epi8('0');
  const __m256i nine = _mm256_set1_epi8(9);
  const __m256i wanted = _mm256_set1_epi8(separator);
  for (unsigned i = 0; i < bytes; i += 32) {
    const __m256i text = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + i));
    const __m256i x = _mm256_sub_epi8(text, zero);
    const __m256i is_digit = _mm256_cmpeq_epi8(_mm256_min_epu8(x, nine), x);
    const __m256i is_separator = _mm256_cmpeq_epi8(text, wanted);
    others |= static_cast<std::uint64_t>(~static_cast<std::uint32_t>(_mm256_movemask_epi8(is_digit))) << i;
    separators |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(is_separator))) << i;
  }
#elif defined(__SSE2__)
  const __m128i zero = _mm_set1_epi8('0');
  const __m128i nine = _mm_set1_epi8(9);
  const __m128i wanted = _mm_set1_epi8(separator);
  for (unsigned i = 0; i < bytes; i += 16) {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i));
    const __m128i x = _mm_sub_epi8(text, zero);
    const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(x, nine), x);
    const __m128i is_separator = _mm_cmpeq_epi8(text, wanted);
    others |= static_cast<std::uint64_t>(0xFFFFU ^ static_cast<std::uint32_t>(_mm_movemask_epi8(is_digit))) << i;
    separators |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(is_separator))) << i;
  }
#else
  for (unsigned i = 0; i < bytes; ++i) {
    others |= static_cast<std::uint64_t>(p[i] < '0' || p[i] > '9') << i;
    separators |= static_cast<std::uint64_t>(p[i] == separator) << i;
  }
#endif
}

/// The digits [begin, end) of p in the high bytes of a word, zero bytes before them; at most 8 of them count.
inline std::uint64_t word_of(const char* p, unsigned begin, unsigned end) {
  std::uint64_t v = 0;
  std::memcpy(&v, p + begin, 8);
  if constexpr (std::endian::native == std::endian::big) v = __builtin_bswap64(v);
  return v << ((8 * (begin - end)) & 63U);
}

/// The values of up to four words of digits.
#if POLYAD_AVX2
inline __m256i values_of(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  __m256i x = _mm256_set_epi64x(static_cast<long long>(d), static_cast<long long>(c), static_cast<long long>(b),
                                static_cast<long long>(a));
  x = _mm256_and_si256(x, _mm256_set1_epi8(0x0F));
  x = _mm256_maddubs_epi16(x, _mm256_set1_epi16(0x010A));   // pairs: 10 * first + second
  x = _mm256_madd_epi16(x, _mm256_set1_epi32(0x00010064));  // fours: 100 * first + second
  return _mm256_add_epi64(_mm256_mul_epu32(x, _mm256_set1_epi64x(10000)), _mm256_srli_epi64(x, 32));
}
#endif

template <int order, unsigned bytes, class Index, class Value>
void window_lines(WindowRun<Index, Value>& run) {
  const char* line = run.line;
  const char* const stop = run.end;
  const char separator = run.separator;
  const Index offset = run.offset;
  Value* const values = run.values;
  std::uint64_t k = run.count;
  Index* out[order];
  for (int m = 0; m < order; ++m) out[m] = run.indices[m];
#if POLYAD_AVX2
  constexpr int groups = order / 4 + 1;  // of four numbers: the indices, then the value
  __m256i low[groups];
  __m256i high[groups];
  for (int g = 0; g < groups; ++g) {
    low[g] = _mm256_set1_epi32(-1);
    high[g] = _mm256_setzero_si256();
  }
#else
  std::uint64_t low[order];
  std::uint64_t high[order] = {};
  for (std::uint64_t& l : low) l = ~std::uint64_t{0};
#endif

  while (line < stop) {
    std::uint64_t ends = 0;
    std::uint64_t separators = 0;
    classify<bytes>(line, separator, ends, separators);
    const std::uint64_t all = ends;
    std::uint64_t words[order + 1];
    unsigned begin = 0;
    unsigned lengths = 0;  // length - 1 of every number, or-ed: above 7 when one is empty or longer than 8
    for (int m = 0; m < order; ++m) {
      const auto end = static_cast<unsigned>(std::countr_zero(ends));
      ends &= ends - 1;
      lengths |= end - begin - 1;
      words[m] = word_of(line, begin, end);
      begin = end + 1;
    }
    const std::uint64_t between = all ^ ends;  // what stands between the indices
    // Branches, not selections: a predicted branch does not hold up the way to the next line, a loaded byte would.
    bool negative = false;
    if (line[begin & 63U] == '-') [[unlikely]] {
      negative = true;
      ends &= ends - 1;
      ++begin;
    }
    auto end = static_cast<unsigned>(std::countr_zero(ends));
    lengths |= end - begin - 1;
    words[order] = word_of(line, begin & 63U, end);
    unsigned decimals = 0;
    if (line[end & 63U] == '.') {
      // The digits before the point move down to make room for those behind it: one number of up to 8 digits.
      const unsigned before = end - begin;
      begin = end + 1;
      ends &= ends - 1;
      end = static_cast<unsigned>(std::countr_zero(ends));
      decimals = end - begin;
      lengths |= (decimals - 1) | (before + decimals - 1);
      words[order] = words[order] >> ((8 * decimals) & 63U) | word_of(line, begin & 63U, end);
    }
    if ((lengths > 7) | ((between & ~separators) != 0) | (ends == 0)) break;

#if POLYAD_AVX2
    alignas(32) std::uint64_t numbers[4 * groups];
    __m256i vectors[groups];
    for (int g = 0; g < groups; ++g) {
      const auto word = [&](int m) { return m <= order ? words[m] : 0; };
      const __m256i x = values_of(word(4 * g), word(4 * g + 1), word(4 * g + 2), word(4 * g + 3));
      vectors[g] = x;
      _mm256_store_si256(reinterpret_cast<__m256i*>(numbers + 4 * g), x);
    }
#else
    std::uint64_t numbers[order + 1];
    for (int m = 0; m <= order; ++m) numbers[m] = eight_digits_value(words[m]);
#endif
    for (int m = 0; m < order; ++m) out[m][k] = static_cast<Index>(static_cast<Index>(numbers[m]) - offset);
    const std::uint64_t mantissa = numbers[order];
    if (mantissa >= exact_integers<Value>) break;
    // Mantissa and power of ten are exact, so that one division rounds correctly (Clinger's fast path).
    const Value magnitude = decimals == 0 ? static_cast<Value>(mantissa)
                                          : static_cast<Value>(mantissa) / static_cast<Value>(powers_of_ten[decimals]);
    const char* next = line + end + 1;
    if (line[end] != '\n') [[unlikely]] {
      if (line[end] != '\r' || line[end + 1] != '\n') break;
      ++next;
    }
    // Only now is it certain that the line counts.
#if POLYAD_AVX2
    for (int g = 0; g < groups; ++g) {
      low[g] = _mm256_min_epu32(low[g], vectors[g]);
      high[g] = _mm256_max_epu32(high[g], vectors[g]);
    }
#else
    for (int m = 0; m < order; ++m) {
      low[m] = numbers[m] < low[m] ? numbers[m] : low[m];
      high[m] = numbers[m] > high[m] ? numbers[m] : high[m];
    }
#endif
    values[k] = negative ? -magnitude : magnitude;
    ++k;
    line = next;
  }

  run.line = line;
  run.count = k;
#if POLYAD_AVX2
  for (int m = 0; m < order; ++m) {
    alignas(32) std::uint64_t lanes[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), low[m / 4]);
    // Only the lower half of a lane carries an index; without a line it is all ones.
    const auto smallest = static_cast<std::uint32_t>(lanes[m % 4]);
    if (smallest < run.low[m]) run.low[m] = smallest;
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), high[m / 4]);
    if (lanes[m % 4] > run.high[m]) run.high[m] = lanes[m % 4];
  }
#else
  for (int m = 0; m < order; ++m) {
    if (low[m] < run.low[m]) run.low[m] = low[m];
    if (high[m] > run.high[m]) run.high[m] = high[m];
  }
#endif
}

/// Short lines need half the looking; a long one among them is tried with the full window, and so on from there.
template <int order, class Index, class Value>
void short_and_long_lines(WindowRun<Index, Value>& run) {
  window_lines<order, 32>(run);
  window_lines<order, 64>(run);
}

template <class Index, class Value>
void parse_any_order(int order, WindowRun<Index, Value>& run) {
  switch (order) {
    case 1:
      return short_and_long_lines<1>(run);
    case 2:
      return short_and_long_lines<2>(run);
    case 3:
      return short_and_long_lines<3>(run);
    case 4:
      return short_and_long_lines<4>(run);
    case 5:
      return short_and_long_lines<5>(run);
    case 6:
      return short_and_long_lines<6>(run);
    default:
      return;  // longer lines seldom fit the window
  }
}
