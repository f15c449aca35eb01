import { describe, it } from 'node:test'
import { timeFor } from '../testing/kill-after-lines.ts'
import { killStores } from '../testing/kill-stores.ts'

describe('openSqliteStores', () => {
  it('loses nothing acknowledged and lets no approval be used twice in 200 kills', timeFor(200), async (t) =>
    killStores(t, 200),
  )
})
