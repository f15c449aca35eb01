import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createValidator } from '@toolgate/core/call'
import { dialectOf } from './document.ts'
import { findSkipped } from './skipped.ts'

/** The patterns that `z.toJSONSchema` of zod 4.0 to 4.6 writes, and those of `z.regexes`, collected from nine releases. */
const rows = JSON.parse(readFileSync(new URL('zod-patterns.test.json', import.meta.url), 'utf8')) as readonly {
  readonly format: string
  readonly versions: string
  readonly pattern: string
}[]

const SAMPLES: readonly string[] = [
  [
    'vera@example.org',
    "o'neil+x@a-b.co.uk",
    '.a@b.co',
    'a..b@c.de',
    'a.@b.co',
    'a@b',
    'a@-b.co',
    '"q"@x.yz',
    'ü@ex.org',
  ],
  ['P1D', 'P1W', 'P1Y2M3DT4H5M6.7S', 'P', 'PT', 'P1W2D', 'P1DT', 'PT1H', '-P1,5Y', 'P1.5D', '+P1Y-2M', 'PT1.5S'],
  ['example.org', 'a.b.', '-a.b', 'a..b', `${'a'.repeat(63)}.de`, `${'a'.repeat(64)}.de`, `${'a.'.repeat(126)}b`],
  [`${'a.'.repeat(126)}bc.`, 'localhost', 'sub.example.org'],
  ['😀', '👩‍👩‍👧', '1', '#️⃣', '🇩🇪', '123', 'a😀', '©'],
  ['127.0.0.1', '255.255.255.256', '01.2.3.4', '::1', '2001:db8::', '1::2::3', '1:2:3:4:5:6:7:8', '::ffff:1.2.3.4'],
  ['10.0.0.0/8', '10.0.0.0/33', '2001:db8::/32', '::/129', '::/0', '00:1a:2b:3c:4d:5e', '00:1A:2B:3C:4D:5E'],
  ['', 'aGVsbG8=', 'aGVsbG8', 'aGVsbA==', 'aGVsb', '*', 'YQ', '0b5e1f3c-2d7a-4f6e-9c8b-1a2b3c4d5e6f'],
  [
    '01890a5d-ac96-774b-bcce-b302099a8057',
    '00000000-0000-0000-0000-000000000000',
    '0b5e1f3c-2d7a-9f6e-9c8b-1a2b3c4d5e6f',
    '1ec9414c-232a-6b00-b3c8-9e6bdeced846',
  ],
  ['V1StGXR8_Z5jdHi6B-myT', 'ckopqwooh000001la8mbi2im9', 'tz4a98xxat96iws9zmbrgj3a', '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
  ['81ARZ3NDEKTSV4RRFFQ69G5FAV', '9m4e2mr0ui3e8a215n4g', '+491701234567', '+0123456', '49170'],
  ['2026-11-22', '2024-02-29', '2026-02-29', '2026-13-01', '12:30', '12:30:00', '12:30:00.125', '24:00:00'],
  [
    '2026-11-22T12:30Z',
    '2026-11-22T12:30:00Z',
    '2026-11-22T12:30:00.5+02:00',
    '2026-11-22T12:30:00',
    '2026-11-22T12:30:00+0200',
  ],
  [
    'a.b',
    'xa.by',
    'abc',
    'ABC',
    'aXb',
    'v1',
    'v-1.5vera@example.org',
    'v1.a..b@c.de',
    'atrue',
    'ax12nfalsenull',
    'b-3truenull',
  ],
  ['true', 'null', 'undefined', '12n', '-5', '3.14', 'https', 'http', 'x', 'EUR', 'XXX', '4111 1111 1111 1111'],
  ['DE89370400440532013000', 'DE00370400440532013000', 'DE01370400440532013000'],
  [22, 27, 32, 40, 43, 64, 86, 96, 128].flatMap((n) => ['a'.repeat(n), `${'A'.repeat(n)}=`, `${'0'.repeat(n)}==`]),
].flat()

/** One pattern of zod is valid without the flag `u` only. */
const nativeOf = (pattern: string) => new RegExp(pattern, pattern.includes('}])|') ? '' : 'u')

describe('the patterns of zod', () => {
  const validate = createValidator()
  for (const { format, versions, pattern } of rows) {
    it(`are checked as JavaScript does: ${format} of ${versions}`, () => {
      const schema = { type: 'string', pattern }
      assert.deepEqual(findSkipped(schema, dialectOf(schema)).warnings, [])
      const native = nativeOf(pattern)
      for (const sample of SAMPLES)
        assert.equal(validate(schema, sample) === undefined, native.test(sample), JSON.stringify(sample))
    })
  }

  it('have a valid and an invalid sample each', () => {
    const without = rows.filter(
      ({ pattern }) => new Set(SAMPLES.map((sample) => nativeOf(pattern).test(sample))).size < 2,
    )
    assert.deepEqual(
      without.map(({ format }) => format),
      ['regexes.anyString'],
    )
  })
})
