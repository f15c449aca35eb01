import { setFlagsFromString } from 'node:v8'

/** The bytes of a WebAssembly function that V8 executes before it optimises the function. */
const WASM_BUDGET = 1_000_000_000

/**
 * Has V8 compile a function with its slowest compiler after 20,000 calls instead of 3,000. Until then, Maglev's code
 * runs.
 *
 * That compiler's threads take 0.7 s of CPU for the code of one tool call, which was a quarter of the CPU time of the
 * first 10,000 calls. Now it compiles a third of that code, and only in busy gateways. V8 reads the number at each
 * decision.
 *
 * undici's parser is WebAssembly. After a handful of answers the slowest compiler would take 11 MB and 0.08 s of CPU
 * for it, and the parser is not measurably faster then.
 */
export function optimizeLate(): void {
  setFlagsFromString('--invocation-count-for-turbofan=20000')
  setFlagsFromString(`--wasm-tiering-budget=${WASM_BUDGET}`)
}
