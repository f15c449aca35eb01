import { setFlagsFromString } from 'node:v8'

/** Bytes that V8 executes of a function of WebAssembly before it compiles that again. */
const WASM_BUDGET = 1_000_000_000

/**
 * Has V8 compile a function with its slowest compiler after 20,000 calls instead of 3,000. Until then, Maglev's code runs.
 *
 * That compiler's threads take 0.7 s of CPU for what one call of a tool runs, which was a quarter of the first 10,000 calls; now
 * it compiles a third of that, and only in gateways that are busy. V8 reads the number whenever it decides.
 *
 * undici's parser is WebAssembly. After a handful of answers the slowest compiler would take 11 MB and 0.08 s of CPU for it,
 * and the parser is not measurably faster then.
 */
export function optimizeLate(): void {
  setFlagsFromString('--invocation-count-for-turbofan=20000')
  setFlagsFromString(`--wasm-tiering-budget=${WASM_BUDGET}`)
}
