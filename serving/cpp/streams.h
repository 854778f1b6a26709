// Streams of frames in C++: a model answers each frame as it comes, from a state of constant size.
//
//     const seqkeras::StreamingModel model("bundles/motion", "libonnxruntime.so.1", /*threads=*/1);
//     seqkeras::Stream stream = model.open();
//     const float frame[] = {0.1f, 9.7f, 0.4f};
//     const auto answers = stream.push({frame, 1, 3});  // an answer for each frame
//
// The bundle is one of `python -m export --stream`, of the pipeline Classify, Tag or Forecast. The
// answers are those of serving/streams.py, and so are the bytes of a state.
//
// Leaves out rows of tables: a bundle with `settings.rows` takes the numbers of rows after scaling
// and encoding, as `Rows.following` in serving/rows.py gives them, without missing numbers. A
// bundle whose frames were never rows takes frames as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace seqkeras {

// Frames in the order in which they come: `count` of them, each of `width` numbers. With known
// covariates, the known numbers of the steps that follow stand behind the numbers of a frame.
struct Frames {
  const float* numbers;
  std::size_t count, width;
};

// The classes of what a stream has given so far, or its number.
struct Classification {
  std::vector<std::string> labels;  // the best one, or those over the threshold; none for a number
  double score;                     // of the best label, or of none; or the number
  std::vector<std::pair<std::string, double>> scores;  // of all labels, the most probable first
  bool is_none = false;             // none of the labels fits: `labels` is empty, in JSON [null]
};

// The tag of the frame with this index in its stream.
struct FrameTag {
  std::string tag;
  std::int64_t frame;
  double score;
};

// The values that follow a frame, in the units of the bundle's rows if it reads rows.
struct Forecasting {
  std::size_t targets;         // the number of values of a step
  std::vector<double> values;  // step by step; for quantiles, those of the one nearest to 1/2
  std::vector<std::pair<double, std::vector<double>>> quantiles;  // quantile -> its values
};

using FrameAnswer = std::variant<Classification, FrameTag, Forecasting>;
using FrameAnswers = std::vector<std::optional<FrameAnswer>>;

// Returns an answer in one line, as `python -m serving stream --json` writes it.
std::string AsJson(const FrameAnswer& answer);

class Stream;
class Streams;
class Batch;
class StreamGraph;

class StreamingModel {
 public:
  // Opens a bundle's stream, and verifies the files that it reads by their sha256.
  //
  // library, threads: as a Generator takes them (seqkeras.h).
  // precision: float32, or another one of the bundle. An int8 graph reads one frame of one stream
  //   at a time: its products have one scale for all that they read.
  // is_scaled: whether frames are rows of a table after scaling and encoding. A bundle that reads
  //   rows is refused without it, since rows as they are would be answered wrongly.
  //
  // Throws std::runtime_error, in one line, if the bundle or the library can not be used.
  StreamingModel(const std::filesystem::path& bundle, const std::string& library, int threads = 0,
                 const std::string& precision = "float32", bool is_scaled = false);

  // Return a stream, from its first frame or from the bytes of a state, and several streams that
  // are stepped together. Several threads may call it.
  //
  // Throw std::invalid_argument if the state is another bundle's or is not whole.
  Stream open() const;
  Stream open(const std::string& state) const;
  Streams open(std::size_t streams) const;

  std::size_t width() const;   // the numbers of a frame
  std::int64_t delay() const;  // the number of frames by which answers come late
  std::int64_t warm_up() const;  // the number of frames before the first answer

 private:
  std::shared_ptr<const StreamGraph> graph_;
};

// One stream of frames, which a StreamingModel opens. A stream is of one thread at a time.
class Stream {
 public:
  explicit Stream(std::unique_ptr<Batch> batch);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  // Returns the answer to each frame, nullopt where answers come late and there is none yet.
  //
  // Throws std::invalid_argument if frames are refused or the stream has ended, and
  // std::runtime_error if the graph fails; the state is then as before.
  FrameAnswers push(const Frames& frames);

  // The bytes of the state after the frames so far, for `open`, here or in Python or JavaScript.
  // Where the bundle reads rows, they hold the last number of each column, and no time: the next
  // row there may have any time.
  std::string state() const;

  // Ends the stream: it takes no further frame.
  void end();

 private:
  std::unique_ptr<Batch> batch_;
  bool is_open_ = true;
};

// Several streams, each with frames of its own, stepped together; one thread at a time.
class Streams {
 public:
  explicit Streams(std::unique_ptr<Batch> batch);
  Streams(Streams&&) noexcept;
  Streams& operator=(Streams&&) noexcept;
  ~Streams();

  std::size_t size() const;

  // Returns for each stream the answers to its frames; nullopt stands for no frame.
  //
  // Throws as Stream::push; the error names the stream, and all states are as before.
  std::vector<FrameAnswers> push(const std::vector<std::optional<Frames>>& frames);

  // The bytes of a stream's state.
  std::string state(std::size_t index) const;

  // Put another stream in the place of one that has ended: a new one, or one of a state.
  void replace(std::size_t index);
  void replace(std::size_t index, const std::string& state);

 private:
  std::unique_ptr<Batch> batch_;
};

}  // namespace seqkeras
