/**
 * Returns how many runs a property takes: a tenth of them in the first tier of tests, and many more with `npm run test:long`.
 *
 * A property that counts what it has met gives the runs that it needs at least as `quick`.
 *
 * `scripts/test.js` sets the tier and runs each file that imports this again, in full, with the end-to-end tests.
 */
export function runs(count: number, long = count * 50, quick = Math.ceil(count / 10)): { numRuns: number } {
  if (process.env['TOOLGATE_LONG']) return { numRuns: long }
  return { numRuns: process.env['TOOLGATE_QUICK'] ? quick : count }
}
