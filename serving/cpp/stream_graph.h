// The graph of a stream, and what a pipeline makes of its numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "streams.h"
#include "tensors.h"

namespace seqkeras {

// A column of rows, whose number x the model reads as z = (g(x) - mean) / deviation, with
// g(x) = log(1 + x) of a column with `log`, else x.
struct Column {
  bool is_number, log;
  double mean, deviation;

  explicit Column(const Json& column);

  double Unscaled(double number) const;
};

//     stream(frames, state) -> answers, state
class StreamGraph {
 public:
  std::string pipeline;
  std::string identity;  // sha256 of the graph and its weights
  int64_t delay;         // the number of frames by which answers come late
  int64_t warm_up;       // the number of frames before the first answer
  bool reads_one;        // one frame of one stream at a time
  std::vector<Spec> inputs;         // of frames: theirs, and the known covariates
  std::vector<Spec> state, output;  // the output is one
  size_t width = 0;                 // of a frame in all inputs
  std::vector<Column> columns;      // of rows; none without

  // See StreamingModel.
  StreamGraph(const Bundle& bundle, int threads, const std::string& precision);

  // Computes the output and the state after frames, from inputs and the state.
  void Run(const std::vector<const OrtValue*>& given, std::vector<OrtValue*>& found) const;

  // The answer to the numbers of the frame with this index in its stream.
  FrameAnswer Answer(const float* numbers, int64_t frame) const;

 private:
  void ReadSpecs(const Json& entries, const Json& graph, const Json& wanted);
  void ReadSettings(const Json& settings);
  Classification Classified(std::vector<double> logits) const;
  Forecasting Forecasted(const float* numbers) const;

  std::vector<std::string> labels_;
  bool multi_label_, none_of_these_;
  double threshold_;
  std::vector<double> quantiles_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::string> next_names_;  // of the state that leaves the graph
  std::vector<const char*> input_names_, output_names_;
};

}  // namespace seqkeras
