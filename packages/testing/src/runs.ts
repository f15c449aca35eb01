/**
 * Returns the number of runs of a property: a tenth of `count` in the first tier of tests, and `long` with `npm run
 * test:long`.
 *
 * Pass `quick` if a property needs a minimum of runs, for example because it counts the cases that it has met.
 *
 * `scripts/test.js` sets the tier and runs each file that imports this again, in full, with the end-to-end tests.
 */
export function runs(count: number, long = count * 50, quick = Math.ceil(count / 10)): { numRuns: number } {
  if (process.env['TOOLGATE_LONG']) return { numRuns: long }
  return { numRuns: process.env['TOOLGATE_QUICK'] ? quick : count }
}
