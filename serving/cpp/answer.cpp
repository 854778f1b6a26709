// answer BUNDLE [--scores] [--library FILE] [--threads N] < texts > answers
//
// A line for each line; with --scores a tab and the score behind it. Lines that wait are answered
// together. A text that is refused has an empty line, and a line on standard error; the status is
// then 1 at the end.
#include <iostream>

#include "command.h"
#include "seqkeras.h"

namespace {

constexpr std::size_t kBatch = 64;
constexpr const char* kUsage =
    "usage: answer BUNDLE [--scores] [--library FILE] [--threads N] < texts";

// Answers texts, the first of which stands in a line of standard input; whether none is refused.
bool Answer(const seqkeras::Generator& generator, const std::vector<std::string>& texts,
            std::size_t line, bool scores) {
  try {
    for (const auto& answer : generator(texts)) {
      std::cout << command::InLine(answer.text);
      if (scores) std::cout << '\t' << answer.score;
      std::cout << '\n';
    }
    std::cout.flush();
    return true;
  } catch (const seqkeras::Refusal& refusal) {
    const auto place = texts.begin() + refusal.place;
    Answer(generator, {texts.begin(), place}, line, scores);
    std::cerr << "answer: standard input, line " << line + refusal.place << ": the text "
              << refusal.what() << '\n';
    std::cout << '\n';
    Answer(generator, {place + 1, texts.end()}, line + refusal.place + 1, scores);
    return false;
  }
}

}  // namespace

int main(int count, char** values) {
  std::ios::sync_with_stdio(false);  // so that the input has a buffer
  std::cout.precision(9);
  std::string bundle, library = "libonnxruntime.so.1";
  int threads = 0;
  bool scores = false;
  for (int place = 1; place < count; ++place) {
    const std::string value = values[place];
    const bool last = place + 1 == count;
    if (value == "--library" && !last) library = values[++place];
    else if (value == "--threads" && !last) {
      if (!command::ReadThreads("answer", values[++place], threads)) return 2;
    }
    else if (value == "--scores") scores = true;
    else if (bundle.empty() && value.rfind("--", 0)) bundle = value;
    else return std::cerr << "answer: unknown: " << value << "; " << kUsage << '\n', 2;
  }
  if (bundle.empty()) return std::cerr << kUsage << '\n', 2;
  try {
    const seqkeras::Generator generator(bundle, library, threads);
    std::vector<std::string> texts;
    std::size_t line = 1;
    bool is_good = true;
    for (std::string text; std::getline(std::cin, text);) {
      if (!text.empty() && text.back() == '\r') text.pop_back();
      texts.push_back(text);
      const bool more_waits = std::cin.rdbuf()->in_avail() > 0;
      if (more_waits && texts.size() < kBatch) continue;
      is_good = Answer(generator, texts, line, scores) && is_good;
      line += texts.size();
      texts.clear();
    }
    return Answer(generator, texts, line, scores) && is_good ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "answer: " << error.what() << '\n';
    return 1;
  }
}
