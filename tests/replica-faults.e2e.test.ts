import { describe, it } from 'node:test'
import { withBinaries } from './support/binaries.ts'
import { surviveFaults } from './support/fault-run.ts'
import { PROGRAMS } from './support/replica-set.ts'

withBinaries(PROGRAMS, (paths) => {
  describe('replicas whose parts are killed and paused', () => {
    it('keep their promises', { timeout: 300_000 }, (t) => surviveFaults(t, paths, { seed: 14, faults: 10 }))
  })
})
