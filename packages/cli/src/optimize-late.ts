import { setFlagsFromString } from 'node:v8'

/**
 * Has V8 compile a function with its slowest compiler after 20,000 calls instead of 3,000. Until then, Maglev's code runs.
 *
 * That compiler's threads take 0.7 s of CPU for what one call of a tool runs, which was a quarter of the first 10,000 calls; now
 * it compiles a third of that, and only in gateways that are busy. V8 reads the number whenever it decides.
 */
export function optimizeLate(): void {
  setFlagsFromString('--invocation-count-for-turbofan=20000')
}
