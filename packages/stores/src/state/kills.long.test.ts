import { describe, it } from 'node:test'
import { killStores } from '../testing/kill-stores.ts'

describe('openSqliteStores', () => {
  it('loses nothing acknowledged and lets no approval be used twice in 200 kills', async (t) => killStores(t, 200))
})
