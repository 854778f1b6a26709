// Answers of a seqkeras bundle in C++: texts in, texts out, by onnxruntime.
//
// The bundle is one of `python -m export --generate-in-graph`, of the pipeline Translate or
// Generate, whose tokenizers are tables of characters. It answers as Python does without options.
// Leaves out other pipelines and tokenizers, and conversations; streams.h answers frames. The
// library is opened by dlopen: POSIX alone.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace seqkeras {

struct Answer {
  std::string text;
  float score;  // log-probability, divided by the length penalty if there is one
};

// A text that can not be answered, and its place in the batch.
struct Refusal : std::invalid_argument {
  std::size_t place;
  Refusal(std::size_t place, const std::string& reason) : invalid_argument(reason), place(place) {}
};

class Generator {
 public:
  // Opens a bundle, and verifies the files that it reads by their sha256.
  //
  // library: onnxruntime's, 1.17 or later, a path or a name that dlopen finds; the one that a
  //   process opens first runs all bundles.
  // threads: of an operation; 0: as many as the machine has cores.
  //
  // Throws std::runtime_error, in one line, if the bundle or the library can not be used.
  Generator(const std::filesystem::path& bundle, const std::string& library, int threads = 0);
  ~Generator();

  // Answers texts in UTF-8, in their order, as one batch. Several threads may call it.
  //
  // Throws Refusal for the first text that can not be answered; nothing is answered then.
  std::vector<Answer> operator()(const std::vector<std::string>& texts) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace seqkeras
