import { describe, it } from 'node:test'
import { timeFor } from './testing/kill-after-lines.ts'
import { surviveKills } from './testing/kills.ts'
import { FORMATS } from './testing/open-any.ts'

for (const format of FORMATS) {
  describe(`durability of ${format}, for long`, () => {
    it(
      'loses and tears nothing it acknowledged in 200 kills, and each call has its beginning and one end',
      timeFor(200),
      async (t) => {
        await surviveKills(t, format, 200)
      },
    )
  })
}
