// stream BUNDLE [--scaled] [--state FILE] [--precision NAME] [--library FILE] [--threads N]
//     < frames > answers
//
// A frame for each line, its numbers with commas between them; no header. A bundle that reads rows
// of a table needs --scaled: the numbers are those after scaling. Each frame is answered as it comes, by a line of JSON: {} before the first answer, {"error": ...} for a frame that is
// refused, with a line on standard error; the status is then 1 at the end.
//
// FILE holds the stream's state: it is read at the start if it exists, and written at the end, also
// at one by SIGINT, SIGTERM, or a reader of the answers that is gone.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "streams.h"

namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    "usage: stream BUNDLE [--scaled] [--state FILE] [--precision NAME] [--library FILE] "
    "[--threads N] < frames";

volatile std::sig_atomic_t stopped = 0;  // by which signal

void Stop(int signal) {
  stopped = signal;
  close(STDIN_FILENO);  // ends a read that waits
}

// The numbers of a line; throws std::invalid_argument.
std::vector<float> NumbersOf(const std::string& line) {
  std::vector<float> numbers;
  for (std::size_t start = 0, end = 0; end < line.size() || numbers.empty(); start = end + 1) {
    end = std::min(line.find(',', start), line.size());
    const std::string cell = line.substr(start, end - start);
    char* rest = nullptr;
    numbers.push_back(std::strtof(cell.c_str(), &rest));
    const bool is_hex = cell.find_first_of("xX") != std::string::npos;
    if (cell.empty() || is_hex || rest != cell.c_str() + cell.size()) {
      throw std::invalid_argument("a frame must be numbers with commas between them; received '" +
                                  command::InLine(cell) + "'.");
    }
  }
  return numbers;
}

seqkeras::Stream Opened(const seqkeras::StreamingModel& model, const fs::path& state) {
  if (state.empty() || !fs::exists(state)) return model.open();
  std::ifstream file(state, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return model.open(bytes.str());
}

void Write(const std::string& state, const fs::path& path) {
  fs::path aside = path;
  aside += ".new";  // so that a state is there whatever ends the process
  std::ofstream file(aside, std::ios::binary);
  file << state << std::flush;
  if (!file) throw std::runtime_error(path.string() + ": the state can not be written there");
  fs::rename(aside, path);
}

// Answers the frames of standard input; whether none is refused.
bool AnswerFrames(seqkeras::Stream& stream) {
  bool is_good = true;
  std::size_t line = 1;
  for (std::string text; !stopped && std::getline(std::cin, text); ++line) {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    try {
      const std::vector<float> numbers = NumbersOf(text);
      for (const auto& answer : stream.push({numbers.data(), 1, numbers.size()})) {
        std::cout << (answer ? seqkeras::AsJson(*answer) : "{}") << '\n';
      }
    } catch (const std::invalid_argument& error) {
      is_good = false;
      std::cerr << "stream: standard input, line " << line << ": " << error.what() << '\n';
      const nlohmann::json refusal = {{"error", error.what()}};
      std::cout << refusal.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    }
    std::cout.flush();
  }
  return is_good;
}

}  // namespace

int main(int count, char** values) {
  std::ios::sync_with_stdio(false);  // so that the input has a buffer
  std::string bundle, library = "libonnxruntime.so.1", precision = "float32";
  fs::path state;
  int threads = 0;
  bool is_scaled = false;
  for (int place = 1; place < count; ++place) {
    const std::string value = values[place];
    const bool last = place + 1 == count;
    if (value == "--help") return std::cout << kUsage << '\n', 0;
    if (value == "--scaled") is_scaled = true;
    else if (value == "--library" && !last) library = values[++place];
    else if (value == "--precision" && !last) precision = values[++place];
    else if (value == "--state" && !last) state = values[++place];
    else if (value == "--threads" && !last) {
      if (!command::ReadThreads("stream", values[++place], threads)) return 2;
    }
    else if (bundle.empty() && value.rfind("--", 0)) bundle = value;
    else return std::cerr << "stream: unknown: " << value << "; " << kUsage << '\n', 2;
  }
  if (bundle.empty()) return std::cerr << kUsage << '\n', 2;
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) std::signal(signal, Stop);
  try {
    const seqkeras::StreamingModel model(bundle, library, threads, precision, is_scaled);
    seqkeras::Stream stream = Opened(model, state);
    const bool is_good = AnswerFrames(stream);
    if (!state.empty()) Write(stream.state(), state);
    return stopped ? 128 + stopped : !is_good;
  } catch (const std::exception& error) {
    std::cerr << "stream: " << error.what() << '\n';
    return 1;
  }
}
