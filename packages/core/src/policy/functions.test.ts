import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import path from 'node:path'
import { host, like, within } from './functions.ts'

describe('within', () => {
  const inside = [
    '/workspace',
    '/workspace/',
    '/workspace/a',
    '/workspace//a/./b',
    '/workspace/a/../b',
    'a/b',
    '',
    '.',
    './a',
    'a/../b',
  ]
  for (const text of inside) {
    it(`finds ${JSON.stringify(text)} inside /workspace`, () => assert.equal(within(text, '/workspace'), true))
  }

  const outside = [
    '/etc/passwd',
    '/workspace/../etc',
    '/workspace/a/../../etc',
    '/workspace2',
    '/Workspace/a',
    '/',
    '..',
    '../workspace2',
    'a/../../etc',
    '~/a',
    '~root',
    '/workspace/a\0.txt',
    '/workspace/.. ',
    '..\n',
    '..\u00a0',
    '/workspace/.."',
    "..'",
    '"/workspace/a',
  ]
  for (const text of outside) {
    it(`finds ${JSON.stringify(text)} outside /workspace`, () => assert.equal(within(text, '/workspace'), false))
  }

  it('takes / for a root that holds everything, and a root with dots', () => {
    assert.equal(within('/etc/passwd', '/'), true)
    assert.equal(within('/data/a', '/workspace/../data'), true)
  })

  for (const root of ['', '.', '..', 'workspace', '~']) {
    it(`refuses the root ${JSON.stringify(root)}: what lies in it cannot be known`, () => {
      assert.throws(() => within('/etc/passwd', root), /wants an absolute root/)
    })
  }

  it('agrees with the resolving of POSIX paths', () => {
    const segment = fc.constantFrom('a', 'b', '..', '.', '')
    const text = fc.array(segment, { maxLength: 8 }).map((parts) => parts.join('/'))
    fc.assert(
      fc.property(text, text, (file, below) => {
        const root = path.posix.resolve('/', below)
        const full = path.posix.resolve(root, file)
        const expected = root === '/' || full === root || full.startsWith(`${root}/`)
        assert.equal(within(file, `/${below}`), expected)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('host', () => {
  const table: readonly (readonly [url: string, host: string])[] = [
    ['https://example.org/a?b', 'example.org'],
    ['https://EXAMPLE.org:8443/', 'example.org'],
    ['https://example.org@evil.test/', 'evil.test'],
    [String.raw`https:\\evil.test\@example.org`, 'evil.test'],
    ['https://example.org./', 'example.org'],
    ['custom://EXAMPLE.org/', 'example.org'],
    ['http://[::1]:80/', '[::1]'],
    ['http://2130706433/', '127.0.0.1'],
    ['http://bücher.example/', 'xn--bcher-kva.example'],
    ['file:///etc/passwd', ''],
    ['mailto:vera@example.org', ''],
  ]
  for (const [url, expected] of table) {
    it(`of ${url} is ${JSON.stringify(expected)}`, () => assert.equal(host(url), expected))
  }

  it('throws for what is no absolute URL, so that the condition fails', () => {
    for (const url of ['', 'example.org', '/a', '//example.org', 'http://']) assert.throws(() => host(url), TypeError)
  })
})

describe('like', () => {
  it('matches whole texts, with * for any run of characters', () => {
    assert.equal(like('vera@example.org', '*@example.org'), true)
    assert.equal(like('vera@example.org.evil', '*@example.org'), false)
    assert.equal(like('a.b', 'a?b'), false)
    assert.equal(like('', '*'), true)
  })

  it('answers at once for patterns that make others backtrack', () => {
    assert.equal(like('a'.repeat(100_000), `${'*a'.repeat(100)}*b`), false)
  })
})
