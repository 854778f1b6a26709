// What the commands share: options and lines.
#pragma once

#include <charconv>
#include <iostream>
#include <string>

namespace command {

constexpr int kMostThreads = 1024;

// A text in one line, as `python -m serving predict` writes it.
inline std::string InLine(const std::string& text) {
  std::string line;
  for (const unsigned char character : text) {
    constexpr const char* digits = "0123456789abcdef";
    if (character == '\n') line += "\\n";
    else if (character == '\r') line += "\\r";
    else if (character == '\t') line += "\\t";
    else if (character < 32 || character == 127) {
      line += std::string("\\x") + digits[character >> 4] + digits[character & 15];
    } else line += character;
  }
  return line;
}

// Reads the number of threads; a text that is none is told on standard error.
inline bool ReadThreads(const char* who, const std::string& text, int& threads) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, threads);
  if (error == std::errc() && rest == end && threads >= 0 && threads <= kMostThreads) return true;
  std::cerr << who << ": --threads must be a whole number from 0 to " << kMostThreads
            << "; received " << InLine(text) << '\n';
  return false;
}

}  // namespace command
