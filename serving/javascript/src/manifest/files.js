// A bundle's manifest and files, read and verified.

import { BundleError } from "../refusal.js";
import { COPY_AGAIN, MANIFEST, parseManifest } from "./format.js";

/**
 * Reads a file of a bundle. An error whose `code` is "ENOENT" says that there is no such file. Its
 * property `where`, if it has one, names the bundle in errors.
 *
 * @typedef {((path: string) => Uint8Array | Promise<Uint8Array>) & {where?: string}} Read
 */

/**
 * A bundle whose manifest was read. Every file is verified by size and sha256 when it is read: the
 * same bytes are then used, so that a bundle replaced meanwhile is refused and never mixed.
 */
export class Bundle {
  /**
   * @param {Read} read
   * @param {import("./format.js").Manifest} manifest
   * @param {{Tokenizer: any}} [tokenizers] the module `@huggingface/tokenizers`.
   */
  constructor(read, manifest, tokenizers) {
    this.read = read;
    this.where = read.where;
    this.manifest = manifest;
    this.tokenizers = tokenizers;
  }

  /**
   * Return the bundle that `read` reads.
   *
   * @param {Read} read
   * @param {{Tokenizer: any}} [tokenizers]
   * @throws {BundleError} if the manifest is missing, or can not be read.
   */
  static async open(read, tokenizers) {
    let bytes;
    try {
      bytes = await read(MANIFEST);
    } catch (cause) {
      const place = read.where === undefined ? "the bundle" : read.where;
      const reason = isMissing(cause)
        ? `${place} has no ${MANIFEST}; expected a bundle, as seqkeras export makes it.`
        : `${place}: ${MANIFEST} can not be read: ${messageOf(cause)}`;
      throw new BundleError(reason, { advice: "", cause });
    }
    const manifest = parseManifest(asBytes(bytes, MANIFEST, read.where), read.where);
    return new Bundle(read, manifest, tokenizers);
  }

  /**
   * Return the bytes of files, in their order.
   *
   * @param {string[]} names
   * @returns {Promise<Uint8Array[]>}
   * @throws {BundleError} naming every file that is missing, truncated or altered.
   */
  async files(names) {
    const found = await Promise.all(names.map((name) => this.#verified(name)));
    const problems = found.filter((file) => typeof file === "string");
    if (problems.length) throw new BundleError(problems, { where: this.where, advice: COPY_AGAIN });
    return /** @type {Uint8Array[]} */ (found);
  }

  /** Return the bytes of a file, or a problem. */
  async #verified(name) {
    const expected = this.manifest.files[name];
    let bytes;
    try {
      bytes = asBytes(await this.read(name), name, this.where);
    } catch (cause) {
      if (cause instanceof BundleError) throw cause;
      return isMissing(cause) ? `${name} is missing` : `${name} can not be read: ${messageOf(cause)}`;
    }
    if (bytes.length !== expected.bytes) {
      return `${name} has ${bytes.length} bytes, expected ${expected.bytes}: truncated or altered`;
    }
    if ((await sha256(bytes)) !== expected.sha256) {
      return `${name} does not have the manifest's sha256: altered`;
    }
    return bytes;
  }
}

/** Return the sha256 of bytes, in hexadecimal digits. @param {BufferSource} bytes */
export async function sha256(bytes) {
  if (!globalThis.crypto?.subtle) {
    throw new Error(
      "load: files can not be verified, because this page has no Web Crypto: serve it by HTTPS or "
        + "from localhost.",
    );
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function asBytes(bytes, name, where) {
  if (bytes instanceof Uint8Array) return bytes;
  if (bytes instanceof ArrayBuffer) return new Uint8Array(bytes);
  throw new BundleError(`${name}: read must give a Uint8Array`, { where, advice: "" });
}

const isMissing = (error) => error?.code === "ENOENT" || error?.code === "ENOTDIR";
const messageOf = (error) => String(error?.message ?? error).split("\n")[0].replace(/\.$/, "");
