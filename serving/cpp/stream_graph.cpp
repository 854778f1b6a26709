#include "stream_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

namespace seqkeras {
namespace {

constexpr const char *kRole = "stream", *kKnown = "known";
const std::string kNext = "next_";  // before the name of an entry that leaves the graph

Json GraphOf(const Json& manifest, const std::string& precision) {
  const Json& graphs = manifest.at("graphs");
  if (!graphs.contains(kRole)) {
    throw Failure("there is no stream: export the run of a model that reads no later frames with "
                  "--stream");
  }
  if (precision == "float32") return graphs.at(kRole);
  const Json precisions = manifest.value("precisions", Json::object());
  std::string known = "float32";
  for (const auto& [name, value] : precisions.items()) known += ", " + name;
  if (!precisions.contains(precision)) {
    throw Failure("precision must be one of the bundle's, " + known + "; received " + precision);
  }
  return precisions.at(precision).at("graphs").value(kRole, graphs.at(kRole));
}

// The sha256 of a graph and its weights.
std::string IdentityOf(const Json& manifest, const Json& graph) {
  const auto sum_of = [&manifest](const std::string& file) {
    return manifest.at("files").at(file).at("sha256").get<std::string>();
  };
  std::stringstream sums;
  sums << sum_of(graph.at("file"));
  for (const Json& file : graph.value("weights", Json::array())) sums << sum_of(file);
  return Sha256(sums);
}

std::vector<double> Softmax(const std::vector<double>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> scores(logits.size());
  std::transform(logits.begin(), logits.end(), scores.begin(),
                 [largest](double logit) { return std::exp(logit - largest); });
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  for (double& score : scores) score /= sum;
  return scores;
}

std::vector<double> Sigmoid(std::vector<double> logits) {
  for (double& logit : logits) logit = 1 / (1 + std::exp(-logit));
  return logits;
}

}  // namespace

Column::Column(const Json& column)
    : is_number(column.value("categories", Json::array()).empty()),
      log(column.value("log", false)),
      mean(column.value("mean", 0.0)),
      deviation(column.value("deviation", 1.0)) {}

double Column::Unscaled(double number) const {
  const double read = mean + deviation * number;
  return log ? std::expm1(read) : read;
}

StreamGraph::StreamGraph(const Bundle& bundle, int threads, const std::string& precision) {
  const Json graph = GraphOf(bundle.manifest, precision);
  pipeline = bundle.manifest.at("pipeline");
  identity = IdentityOf(bundle.manifest, graph);
  delay = graph.value("delay", 0);
  warm_up = std::max<int64_t>(delay, graph.value("warm_up", 0));
  reads_one = precision.rfind("int", 0) == 0;
  const Json settings = bundle.manifest.value("settings", Json::object());
  ReadSpecs(bundle.manifest.at("state"), graph, settings.value("output", Json()));
  ReadSettings(settings);
  graph_ = bundle.Open(graph, threads);
}

void StreamGraph::Run(const std::vector<const OrtValue*>& given,
                      std::vector<OrtValue*>& found) const {
  try {
    Ort::ThrowOnError(Ort::GetApi().Run(graph_->session, nullptr, input_names_.data(), given.data(),
                                        given.size(), output_names_.data(), found.size(),
                                        found.data()));
  } catch (const Ort::Exception& error) {
    std::string reason = error.what();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw Failure(pipeline + ": onnxruntime can not run the stream: " + reason);
  }
}

FrameAnswer StreamGraph::Answer(const float* numbers, int64_t frame) const {
  if (pipeline == "Forecast") return Forecasted(numbers);
  const std::vector<double> logits(numbers, numbers + output[0].count());
  if (pipeline == "Classify") return Classified(logits);
  const std::vector<double> scores = Softmax(logits);
  const size_t tag = std::max_element(scores.begin(), scores.end()) - scores.begin();
  return FrameTag{labels_[tag], frame, scores[tag]};
}

// entries: of the manifest's state. wanted: the name of the output; null for the only one.
void StreamGraph::ReadSpecs(const Json& entries, const Json& graph, const Json& wanted) {
  const char* frames = pipeline == "Forecast" ? "window" : "frames";
  std::vector<std::string> names;
  for (const Json& entry : entries) {
    if (entry.at("per") == kRole) names.push_back(entry.at("name"));
  }
  const auto add = [](const Json& specs, const Json& name, size_t leading, auto& read) {
    for (const Json& spec : specs) {
      if (spec.at("name") == name) read.emplace_back(spec, leading);
    }
  };
  const Json &given = graph.at("inputs"), &found = graph.at("outputs");
  for (const char* name : {frames, kKnown}) add(given, name, 2, inputs);
  for (const std::string& name : names) add(given, name, 1, state);
  for (const Json& spec : found) {
    const bool is_next = spec.at("name").get<std::string>().rfind(kNext, 0) == 0;
    if (wanted.is_null() ? output.empty() && !is_next : spec.at("name") == wanted) {
      output.emplace_back(spec, 2);
    }
  }
  const auto are_floats = [](const std::vector<Spec>& specs) {
    return std::all_of(specs.begin(), specs.end(),
                       [](const Spec& spec) { return spec.is_float(); });
  };
  if (inputs.empty() || inputs[0].name != frames || !are_floats(inputs) || output.size() != 1 ||
      !are_floats(output) || state.size() != names.size() ||
      given.size() != inputs.size() + state.size()) {
    throw Failure(std::string("the stream must take ") + frames +
                  " and its state, and give answers, in float32");
  }
  for (const Spec& spec : state) next_names_.push_back(kNext + spec.name);
  output_names_ = {output[0].name.c_str()};
  for (const std::string& name : next_names_) output_names_.push_back(name.c_str());
  for (const auto* specs : {&inputs, &state}) {
    for (const Spec& spec : *specs) input_names_.push_back(spec.name.c_str());
  }
  for (const Spec& spec : inputs) width += spec.count();
}

void StreamGraph::ReadSettings(const Json& settings) {
  labels_ = settings.value("labels", labels_);
  multi_label_ = settings.value("multi_label", false);
  none_of_these_ = settings.value("none_of_these", false);
  threshold_ = settings.value("threshold", 0.5);
  quantiles_ = settings.value("quantiles", quantiles_);
  if (const Json rows = settings.value("rows", Json()); !rows.is_null()) {
    for (const Json& column : rows.at("columns")) columns.emplace_back(column);
  }
  const size_t num_numbers = std::count_if(
      columns.begin(), columns.end(), [](const Column& column) { return column.is_number; });
  const std::vector<int64_t>& shape = output[0].shape;
  const auto is_row_of = [&shape](size_t size) { return shape == std::vector{int64_t(size)}; };
  bool fits = num_numbers <= width;
  if (pipeline == "Classify") {
    const bool one_of_two = labels_.size() == 2 && !multi_label_ && is_row_of(1);
    fits &= one_of_two || is_row_of(std::max<size_t>(labels_.size(), 1) + none_of_these_);
    fits &= !none_of_these_ || (!labels_.empty() && !multi_label_ && !one_of_two);
  } else if (pipeline == "Tag") {
    fits &= !labels_.empty() && is_row_of(labels_.size());
  } else if (pipeline == "Forecast") {
    const size_t axes = shape.size() - !quantiles_.empty();
    fits &= axes == 1 || axes == 2;
    fits &= quantiles_.empty() || shape.back() == int64_t(quantiles_.size());
  } else {
    throw Failure(pipeline + " has no streams");
  }
  if (!fits) throw Failure("the settings of " + pipeline + " are not those of the stream's graph");
}

Classification StreamGraph::Classified(std::vector<double> logits) const {
  if (labels_.empty()) return {{}, logits[0], {}};
  if (logits.size() < labels_.size()) logits.insert(logits.begin(), 0.0);  // of the first of two
  const std::vector<double> scores = multi_label_ ? Sigmoid(logits) : Softmax(logits);
  Classification answer;
  for (size_t label = 0; label < labels_.size(); ++label) {
    answer.scores.emplace_back(labels_[label], scores[label]);
  }
  std::stable_sort(answer.scores.begin(), answer.scores.end(),
                   [](const auto& one, const auto& other) { return one.second > other.second; });
  answer.score = answer.scores[0].second;
  if (none_of_these_ && scores.back() > answer.score) {  // the last logit is none's
    answer.score = scores.back();
    answer.is_none = true;
    return answer;
  }
  for (const auto& [label, score] : answer.scores) {
    if (multi_label_ ? score > threshold_ : answer.labels.empty()) answer.labels.push_back(label);
  }
  return answer;
}

Forecasting StreamGraph::Forecasted(const float* numbers) const {
  const std::vector<int64_t>& shape = output[0].shape;
  const size_t depth = std::max<size_t>(quantiles_.size(), 1);
  const bool has_targets = shape.size() - !quantiles_.empty() == 2;
  Forecasting answer{has_targets ? size_t(shape[1]) : 1, {}, {}};
  const auto values_of = [&](size_t quantile) {
    std::vector<double> values(output[0].count() / depth);
    for (size_t place = 0; place < values.size(); ++place) {
      const size_t target = place % answer.targets;
      values[place] = numbers[place * depth + quantile];
      if (target < columns.size()) values[place] = columns[target].Unscaled(values[place]);
    }
    return values;
  };
  const auto from_middle = [](double one, double other) {
    return std::abs(one - 0.5) < std::abs(other - 0.5);
  };
  const auto middle = std::min_element(quantiles_.begin(), quantiles_.end(), from_middle);
  answer.values = values_of(middle - quantiles_.begin());
  for (size_t index = 0; index < quantiles_.size(); ++index) {
    answer.quantiles.emplace_back(quantiles_[index], values_of(index));
  }
  return answer;
}

}  // namespace seqkeras
