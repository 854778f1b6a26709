#include "streams.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "stream_graph.h"
#include "stream_state.h"

namespace seqkeras {
namespace {

using Refused = std::invalid_argument;

void RequireScaled(const Json& manifest, bool is_scaled) {
  const Json settings = manifest.value("settings", Json::object());
  if (is_scaled || settings.value("rows", Json()).is_null()) return;
  throw Failure("it reads rows of a table, and this host scales and encodes none: give frames after "
                "that (serving/rows.py), and say so (--scaled)");
}

}  // namespace

// The states of streams that are stepped together; a call that fails leaves them as they were.
//
// There are three sets of states: a step reads one and writes another, and one keeps the states
// from before the call. So a step of all streams neither allocates nor copies a state; a step of
// some streams gathers their rows.
class Batch {
 public:
  // is_one: whether errors name no stream.
  Batch(std::shared_ptr<const StreamGraph> graph, size_t count, bool is_one)
      : graph_(std::move(graph)), is_one_(is_one), frames_(count), memories_(count) {
    for (Tensors& states : states_) states = ZerosOf(graph_->state, {int64_t(count)});
  }

  const std::string& who() const { return graph_->pipeline; }

  size_t size() const { return frames_.size(); }

  void Require(size_t index) const {
    if (index >= size()) {
      throw Refused(who() + ": a stream's index must be from 0 to " + std::to_string(size() - 1) +
                    "; received " + std::to_string(index) + ".");
    }
  }

  // Puts a new stream in the place of one.
  void Replace(size_t index) {
    for (Tensor& tensor : states_[kept_]) std::memset(tensor.row(index), 0, tensor.row_size);
    frames_[index] = 0;
    memories_[index] = {};
  }

  // Puts a stream of a state in the place of one.
  void Replace(size_t index, const std::string& bytes) {
    const StreamState state = ReadState(bytes);
    std::vector<const char*> arrays;
    for (const Spec& spec : graph_->state) {
      const auto found = std::find(state.specs.begin(), state.specs.end(), spec);
      if (found != state.specs.end()) {
        arrays.push_back(state.arrays[found - state.specs.begin()]);
      }
    }
    if (state.bundle != graph_->identity || arrays.size() != graph_->state.size() ||
        arrays.size() != state.arrays.size()) {
      throw Refused(who() + ": state is that of another bundle or precision; open it there, or "
                    "begin anew.");
    }
    for (size_t entry = 0; entry < arrays.size(); ++entry) {
      Tensor& tensor = states_[kept_][entry];
      std::memcpy(tensor.row(index), arrays[entry], tensor.row_size);
    }
    frames_[index] = state.frames;
    memories_[index] = state.memory;
  }

  std::string State(size_t index) const {
    StreamState state{graph_->identity, frames_[index], memories_[index], graph_->state, {}};
    for (const Tensor& tensor : states_[kept_]) state.arrays.push_back(tensor.row(index));
    return BytesOf(state);
  }

  // Adds to the answers of each stream those to its frames; both have the size of the batch.
  void Push(const std::optional<Frames>* given, FrameAnswers* answers) {
    for (size_t index = 0; index < size(); ++index) {
      if (given[index]) RequireFrames(*given[index], index);
    }
    for (size_t index = 0; index < size(); ++index) {
      if (given[index]) answers[index].reserve(given[index]->count);
    }
    now_ = kept_;
    if (graph_->reads_one) {
      for (size_t index = 0; index < size(); ++index) {
        rows_ = {index};
        const size_t count = given[index] ? given[index]->count : 0;
        for (size_t frame = 0; frame < count; ++frame) Step(given, frame, frame + 1, answers);
      }
    } else {
      for (size_t done = 0, end = 0;; done = end) {
        rows_.clear();
        for (size_t index = 0; index < size(); ++index) {
          if (!given[index] || given[index]->count <= done) continue;
          end = rows_.empty() ? given[index]->count : std::min(end, given[index]->count);
          rows_.push_back(index);
        }
        if (rows_.empty()) break;
        Step(given, done, end, answers);
      }
    }
    kept_ = now_;
    for (size_t index = 0; index < size(); ++index) {
      if (given[index]) Follow(*given[index], index);
    }
  }

 private:
  // The tensors of a step, made anew when its sizes change.
  struct Room {
    size_t count = 0, length = 0;  // of streams, and of frames of each
    Tensors inputs, output;
    Tensors before, after;  // the states of some streams

    void Fit(const StreamGraph& graph, size_t streams, size_t frames, bool holds_states) {
      if (streams == count && frames == length) return;
      const int64_t rows = streams, steps = frames;
      count = 0;  // if memory is short, the next step makes them again
      inputs = ZerosOf(graph.inputs, {rows, steps});
      output = ZerosOf(graph.output, {rows, steps});
      if (holds_states) {
        before = ZerosOf(graph.state, {rows});
        after = ZerosOf(graph.state, {rows});
      }
      count = streams, length = frames;
    }
  };

  std::string NameOf(size_t index) const {
    return who() + ": frames" + (is_one_ ? "" : " of stream " + std::to_string(index));
  }

  void RequireFrames(const Frames& frames, size_t index) const {
    const auto [numbers, count, width] = frames;
    if (!count || width != graph_->width) {
      throw Refused(NameOf(index) + " must have shape (frames, " + std::to_string(graph_->width) +
                    "), one frame at least; received (" + std::to_string(count) + ", " +
                    std::to_string(width) + ").");
    }
    const float* end = numbers + count * width;
    const float* wrong = std::find_if_not(numbers, end, [](float x) { return std::isfinite(x); });
    if (wrong < end) {
      throw Refused(NameOf(index) + " must be finite numbers in float32; received " +
                    std::to_string(*wrong) + " in frame " +
                    std::to_string((wrong - numbers) / width) + ".");
    }
  }

  // Remembers frames that were answered.
  void Follow(const Frames& frames, size_t index) {
    frames_[index] += frames.count;
    if (graph_->columns.empty()) return;
    Memory& memory = memories_[index];
    memory.time.reset();
    if (!memory.numbers) memory.numbers.emplace();
    memory.numbers->clear();
    const float* last = frames.numbers + (frames.count - 1) * frames.width;
    for (const Column& column : graph_->columns) {
      if (column.is_number) memory.numbers->push_back(column.Unscaled(*last++));
    }
  }

  // Returns the index of a set of states that no step has written.
  size_t Free() const { return now_ == kept_ ? (kept_ + 1) % 3 : 3 - kept_ - now_; }

  // Answers the frames from `begin` to `end` of the streams in `rows_`.
  void Step(const std::optional<Frames>* given, size_t begin, size_t end, FrameAnswers* answers) {
    const size_t length = end - begin;
    const bool are_all = rows_.size() == size();
    Room& room = are_all ? of_all_ : of_some_;
    room.Fit(*graph_, rows_.size(), length, !are_all);
    for (size_t place = 0; place < rows_.size(); ++place) {
      Read(*given[rows_[place]], begin, end, place, room.inputs);
    }
    if (are_all) {
      const size_t next = Free();
      Run(room, states_[now_], states_[next]);
      now_ = next;
    } else {
      if (now_ == kept_) {
        now_ = Free();
        for (size_t entry = 0; entry < room.before.size(); ++entry) {
          Tensor& tensor = states_[now_][entry];
          std::memcpy(tensor.bytes, states_[kept_][entry].bytes, tensor.size);
        }
      }
      ForRows(room.before, [](char* in_step, char* in_batch, size_t size) {
        std::memcpy(in_step, in_batch, size);
      });
      Run(room, room.before, room.after);
      ForRows(room.after, [](char* in_step, char* in_batch, size_t size) {
        std::memcpy(in_batch, in_step, size);
      });
    }
    for (size_t place = 0; place < rows_.size(); ++place) {
      const size_t index = rows_[place];
      Add(reinterpret_cast<const float*>(room.output[0].row(place)), length,
          frames_[index] + int64_t(begin), index, answers[index]);
    }
  }

  // Calls `copy` with each row of a step's states, and the same row of the batch.
  template <class Copy>
  void ForRows(Tensors& of_step, const Copy& copy) {
    for (size_t entry = 0; entry < of_step.size(); ++entry) {
      for (size_t place = 0; place < rows_.size(); ++place) {
        copy(of_step[entry].row(place), states_[now_][entry].row(rows_[place]),
             of_step[entry].row_size);
      }
    }
  }

  // Copies frames of a stream to the row `place` of the inputs.
  static void Read(const Frames& frames, size_t begin, size_t end, size_t place, Tensors& inputs) {
    const float* numbers = frames.numbers + begin * frames.width;
    for (Tensor& input : inputs) {
      const size_t width = input.row_size / sizeof(float) / (end - begin);
      auto* to = reinterpret_cast<float*>(input.row(place));
      for (size_t frame = 0; frame < end - begin; ++frame) {
        std::copy_n(numbers + frame * frames.width, width, to + frame * width);
      }
      numbers += width;  // the next input stands behind it in each frame
    }
  }

  void Run(Room& room, const Tensors& before, Tensors& after) {
    given_.clear();
    found_.clear();
    for (const Tensor& tensor : room.inputs) given_.push_back(tensor.value);
    for (const Tensor& tensor : before) given_.push_back(tensor.value);
    for (Tensor& tensor : room.output) found_.push_back(tensor.value);
    for (Tensor& tensor : after) found_.push_back(tensor.value);
    graph_->Run(given_, found_);
  }

  // Adds the answers to `length` frames, the first of which is the stream's frame `first`.
  void Add(const float* numbers, size_t length, int64_t first, size_t index,
           FrameAnswers& answers) const {
    const size_t size = graph_->output[0].count();
    if (!std::all_of(numbers, numbers + length * size, [](float x) { return std::isfinite(x); })) {
      throw Refused(NameOf(index) + ": the model gives no finite number for it.");
    }
    for (int64_t frame = first; frame < first + int64_t(length); ++frame, numbers += size) {
      if (frame < graph_->warm_up) answers.emplace_back();
      else answers.emplace_back(graph_->Answer(numbers, frame - graph_->delay));
    }
  }

  std::shared_ptr<const StreamGraph> graph_;
  bool is_one_;
  std::vector<int64_t> frames_;  // so far, of each stream
  std::vector<Memory> memories_;
  std::array<Tensors, 3> states_;
  size_t kept_ = 0, now_ = 0;  // the states before a call, and those after its last step
  Room of_all_, of_some_;
  std::vector<size_t> rows_;            // the streams of a step
  std::vector<const OrtValue*> given_;  // of a step
  std::vector<OrtValue*> found_;
};

StreamingModel::StreamingModel(const fs::path& bundle, const std::string& library, int threads,
                               const std::string& precision, bool is_scaled)
    : graph_(Opened(bundle, library, [threads, &precision, is_scaled](const Bundle& opened) {
        RequireScaled(opened.manifest, is_scaled);
        return std::make_shared<const StreamGraph>(opened, threads, precision);
      })) {}

Stream StreamingModel::open() const {
  return Stream(std::make_unique<Batch>(graph_, 1, /*is_one=*/true));
}

Stream StreamingModel::open(const std::string& state) const {
  auto batch = std::make_unique<Batch>(graph_, 1, /*is_one=*/true);
  batch->Replace(0, state);
  return Stream(std::move(batch));
}

Streams StreamingModel::open(size_t streams) const {
  if (!streams) {
    throw Refused(graph_->pipeline + ": streams must be a whole number of at least 1; received 0.");
  }
  return Streams(std::make_unique<Batch>(graph_, streams, /*is_one=*/false));
}

size_t StreamingModel::width() const { return graph_->width; }

int64_t StreamingModel::delay() const { return graph_->delay; }

int64_t StreamingModel::warm_up() const { return graph_->warm_up; }

Stream::Stream(std::unique_ptr<Batch> batch) : batch_(std::move(batch)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

FrameAnswers Stream::push(const Frames& frames) {
  if (!is_open_) throw Refused(batch_->who() + ": the stream has ended; open another one.");
  const std::optional<Frames> given = frames;
  FrameAnswers answers;
  batch_->Push(&given, &answers);
  return answers;
}

std::string Stream::state() const { return batch_->State(0); }

void Stream::end() { is_open_ = false; }

Streams::Streams(std::unique_ptr<Batch> batch) : batch_(std::move(batch)) {}
Streams::Streams(Streams&&) noexcept = default;
Streams& Streams::operator=(Streams&&) noexcept = default;
Streams::~Streams() = default;

size_t Streams::size() const { return batch_->size(); }

std::vector<FrameAnswers> Streams::push(const std::vector<std::optional<Frames>>& frames) {
  if (frames.size() != size()) {
    throw Refused(batch_->who() + ": frames must be a list of " + std::to_string(size()) +
                  ", one for each stream, nullopt for a stream without frames; received " +
                  std::to_string(frames.size()) + ".");
  }
  std::vector<FrameAnswers> answers(size());
  batch_->Push(frames.data(), answers.data());
  return answers;
}

std::string Streams::state(size_t index) const {
  batch_->Require(index);
  return batch_->State(index);
}

void Streams::replace(size_t index) {
  batch_->Require(index);
  batch_->Replace(index);
}

void Streams::replace(size_t index, const std::string& state) {
  batch_->Require(index);
  batch_->Replace(index, state);
}

std::string AsJson(const FrameAnswer& answer) {
  Json content;
  if (const auto* classes = std::get_if<Classification>(&answer)) {
    content = {{"labels", classes->labels}, {"score", classes->score}};
    if (classes->is_none) content["labels"] = {nullptr};
    for (const auto& [label, score] : classes->scores) content["scores"][label] = score;
  } else if (const auto* tag = std::get_if<FrameTag>(&answer)) {
    content = {{"text", ""},
               {"tag", tag->tag},
               {"start", tag->frame},
               {"end", tag->frame + 1},
               {"score", tag->score}};
  } else {
    const auto& forecasting = std::get<Forecasting>(answer);
    const auto steps_of = [&forecasting](const std::vector<double>& values) {
      Json steps = Json::array();
      for (auto value = values.begin(); value != values.end(); value += forecasting.targets) {
        steps.push_back(std::vector<double>(value, value + forecasting.targets));
      }
      return steps;
    };
    content["values"] = steps_of(forecasting.values);
    for (const auto& [quantile, values] : forecasting.quantiles) {
      content["quantiles"][Json(quantile).dump()] = steps_of(values);
    }
  }
  return content.dump();
}

}  // namespace seqkeras
