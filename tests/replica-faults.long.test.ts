import { randomInt } from 'node:crypto'
import { describe, it } from 'node:test'
import { withBinaries } from './support/binaries.ts'
import { surviveFaults } from './support/fault-run.ts'
import { PROGRAMS } from './support/replica-set.ts'

/** `FAULT_SEED`, `FAULT_COUNT` and `FAULT_SECONDS` choose another run. The seed is printed. */
const seed = Number(process.env['FAULT_SEED'] ?? randomInt(2 ** 31))
const faults = Number(process.env['FAULT_COUNT'] ?? 1000)
const seconds = Number(process.env['FAULT_SECONDS'] ?? 3600)

withBinaries(PROGRAMS, (paths) => {
  describe('replicas whose parts are killed and paused for long', () => {
    it(`keep their promises in ${faults} faults of the seed ${seed}`, { timeout: (seconds + 600) * 1000 }, (t) =>
      surviveFaults(t, paths, { seed, faults, maxMs: seconds * 1000 }),
    )
  })
})
