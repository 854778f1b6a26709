// What Generator and StreamingModel share: the library, the manifest, and graphs that are verified.
#pragma once

#include <filesystem>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#define ORT_API_MANUAL_INIT  // the library is opened by its path, not linked
#include <onnxruntime_cxx_api.h>

namespace seqkeras {

using Json = nlohmann::ordered_json;
using Failure = std::runtime_error;
namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";

// A graph that onnxruntime has opened.
struct Graph {
  Ort::Env env;
  Ort::Session session;
};

// A bundle's folder and its manifest.
struct Bundle {
  fs::path folder;
  Json manifest;

  // Throws Failure if there is no manifest of a schema that is read.
  explicit Bundle(const fs::path& folder);

  // The path of a file; throws Failure unless its sha256 is the manifest's.
  fs::path Verified(const std::string& name) const;

  // Opens a graph of the manifest, and verifies its files.
  //
  // threads: of an operation; 0: as many as the machine has cores.
  std::unique_ptr<Graph> Open(const Json& graph, int threads) const;
};

Json ReadJson(const fs::path& path);

// The error of a JSON file.
Failure Altered(const fs::path& path, const Json::exception& error);

// The sha256 of a stream's bytes, in hexadecimal digits.
std::string Sha256(std::istream& stream);

// Opens onnxruntime's library, once in a process.
void OpenLibrary(const std::string& path);

// Returns what `read` makes of a bundle; a Failure names the bundle in one line.
template <class Read>
auto Opened(const fs::path& folder, const std::string& library, const Read& read) {
  OpenLibrary(library);
  try {
    return read(Bundle(folder));
  } catch (const Json::exception& error) {
    throw Failure(folder.string() + ": " + Altered(kManifest, error).what());
  } catch (const std::exception& error) {
    throw Failure(folder.string() + ": " + error.what());
  }
}

}  // namespace seqkeras
