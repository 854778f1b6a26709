// Whether this machine multiplies 8-bit numbers exactly, by a product that tells.
//
//     y = x w,   x: 255 of uint8, w: 127 of int8, 4 of each;   exact: 4 255 127 = 129,540
//
// x86 processors without VNNI add two products of an unsigned and a signed number in 16 bits, which
// end at 32,767: their y is 65,534. There onnxruntime has another, exact kernel, for weights that it
// makes unsigned first (`session.x64quantprecision`); where the first one is exact, it is also faster.

const BYTES = "CAQ6aQoYCgF4CgF3EgF5Ig1NYXRNdWxJbnRlZ2VyEgRpbnQ4KhsIBAgEEANCAXdKEH9/f39/f39/f39/"
  + "f39/f39aFAoBeBIPCg0IAhIJCgMSAW4KAggEYhQKAXkSDwoNCAYSCQoDEgFuCgIIBEIECgAQCg==";
/** One MatMulInteger; serving/int8.py and serving/cpp have the same bytes. */
export const PRODUCT = Uint8Array.from(atob(BYTES), (character) => character.charCodeAt(0));
const EXACT = 4 * 255 * 127;
/** By onnxruntime's module. @type {WeakMap<object, Promise<boolean>>} */
const known = new WeakMap();

/**
 * Return whether onnxruntime's int8 products overflow here unless it is asked for others.
 *
 * It is measured once a module, in milliseconds.
 *
 * @param {import("./opening.js").Ort} ort
 */
export function overflows(ort) {
  let found = known.get(ort);
  if (!found) {
    found = measured(ort);
    known.set(ort, found);
  }
  return found;
}

async function measured(ort) {
  const session = await ort.InferenceSession.create(PRODUCT, { logSeverityLevel: 4 });
  const x = new ort.Tensor("uint8", new Uint8Array(4).fill(255), [1, 4]);
  const { y } = await session.run({ x });
  await session.release();
  return y.data.some((number) => number !== EXACT);
}
