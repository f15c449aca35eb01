// Loaded before the tests: properties take the same examples each time, so that a test that passed once passes until the
// code changes. `npm run test:long` draws new ones.
import fc from 'fast-check'

fc.configureGlobal({ seed: 1 })
