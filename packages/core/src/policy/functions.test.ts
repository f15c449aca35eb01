import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import path from 'node:path'
import { host, like, UnclearError, within } from './functions.ts'
import { runs } from '../../../testing/src/runs.ts'

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
    '/workspace/100% sure.txt',
    '/workspace/a%20b',
    '/workspace/a:b',
    '/workspace/..a/b..',
    '/workspace/draft….txt',
    '/workspace/\u00fcber.md',
    '/workspace/u\u0308ber.md',
    '/workspace/\u00bd cup.txt',
    '///workspace/a',
    '/workspace/a;b/c',
  ]
  for (const text of inside) {
    it(`finds ${JSON.stringify(text)} inside /workspace`, () => assert.equal(within(text, '/workspace'), true))
  }

  const outside = [
    '/etc/passwd',
    '/workspace/../etc',
    '/workspace/a/../../etc',
    '/workspace2',
    '/',
    '/etc/%61',
    '/srv/\u00fc',
    '/etc/workspace',
    '/home/WORKSP~1',
    '///etc',
  ]
  for (const text of outside) {
    it(`finds ${JSON.stringify(text)} outside /workspace`, () => assert.equal(within(text, '/workspace'), false))
  }

  const unclear = [
    '/Workspace/a',
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
    '/workspace/%2e%2e/etc',
    '/workspace//../etc',
    '/workspace//a/../../etc',
    '/etc//../workspace',
    '/workspace/%2E%2e%2Fetc',
    '/workspace/.%2e/etc',
    'a%2f..%2f..%2fetc',
    'a%5c..%5cetc',
    '/workspace/%252e%252e/etc',
    '/workspace/%25252e',
    '/workspace/a%00.txt',
    '/workspace/%c0%ae%c0%ae/etc',
    '/workspace/%u002e%u002e/etc',
    '/workspace/..\\..\\etc',
    '\\\\server\\share',
    'a\\..\\..\\etc',
    'C:',
    'C:/Windows',
    'c:windows',
    '/C:/Windows',
    '/c|/Windows',
    'file:///etc/passwd',
    'file:///workspace/a',
    'FILE:/workspace/a',
    'http://127.0.0.1/workspace/a',
    'javascript:a',
    '/workspace/a\n/b',
    '/workspace/a\tb',
    '/workspace/a\x7f',
    '/workspace/a\u0085b',
    '/workspace/\u2025/etc',
    '/workspace/\uff0e\uff0e\uff0fetc',
    '/workspace/\u2024\u2024/etc',
    '/workspace/..\u2215etc',
    '/workspace/.. /etc',
    '/workspace/. ./etc',
    '/workspace/.../etc',
    '/workspace/\ufe30/etc',
    '/workspace/\uff05\u0032e\uff052e/etc',
    'file\uff1a///etc/passwd',
    '\uff5e/a',
    '..\u00a5etc',
    '..\u20a9etc',
    '/workspace/..\u200b/etc',
    '/workspace/.\u200d./etc',
    '/workspace/..\u00ad',
    '/workspace/..;/etc',
    '/workspace/..;a=b/etc',
    '/workspace/..%3b/etc',
    '/workspace/.%253B/etc',
    '//workspace/a',
    `/workspace/${'a'.repeat(4096)}`,
    '/\uff37orkspace/a',
    '/WORKSPACE',
    '/w\u00f6rkspace/a',
    '/workspace./a',
    '/workspace /a',
    '/workspace;x/a',
    '/workspace:x/a',
    '/%77orkspace/a',
    '/%2577orkspace/a',
    '/work\u200dspace/a',
    '/WORKSP~1/a',
    '/workspace/%%32%65%%32%65/etc',
    '/workspace/%ff',
    '/workspace/../etc?/../workspace/a',
    '/workspace#/../../etc',
    '$HOME/a',
    '/workspace/\ud800',
    ' /etc/passwd',
    '/workspace/..+/etc',
    `/workspace/%${'25'.repeat(9)}61`,
  ]
  for (const text of unclear) {
    it(`throws for ${JSON.stringify(text)}, which some server may take for another place`, () =>
      assert.throws(() => within(text, '/workspace'), UnclearError))
  }

  it('throws for spellings that could pass a rule against /etc', () => {
    for (const text of [
      '//etc/passwd',
      ' /etc/passwd',
      '/etc/passwd ',
      'file:///etc/passwd',
      '/%65tc/passwd',
      '/a/%2e%2e/etc',
      '/ETC/passwd',
      '../../home/../etc/passwd',
    ])
      assert.throws(() => within(text, '/etc/ssl'.slice(0, text.startsWith('..') ? 8 : 4)), UnclearError, text)
  })

  it('takes a root that is normalised otherwise than the path', () => {
    assert.equal(within('/u\u0308ber/a', '/u\u0308ber'), true)
    assert.equal(within('/\ufb01les/a', '/\ufb01les'), true)
  })

  it('takes / for a root that holds everything, and a root with dots', () => {
    assert.equal(within('/etc/passwd', '/'), true)
    assert.equal(within('/data/a', '/workspace/../data'), true)
  })

  for (const root of ['', '.', '..', 'workspace', '~']) {
    it(`refuses the root ${JSON.stringify(root)}: what lies in it cannot be known`, () => {
      assert.throws(() => within('/etc/passwd', root), /wants an absolute root/)
    })
  }

  const insideUri = [
    'file:///workspace',
    'file:///workspace/',
    'file:///workspace/a/../b',
    'FILE:///workspace/a',
    'file://localhost/workspace/a',
    'file:///workspace/a?b#c',
    'file:///workspace/a%20b',
  ]
  for (const uri of insideUri) {
    it(`finds ${uri} inside file:///workspace`, () => assert.equal(within(uri, 'file:///workspace'), true))
  }

  const outsideUri = [
    'file:///workspace2/a',
    'file:///etc/passwd',
    'file:///workspace/../etc',
    'https://example.org/workspace',
  ]
  for (const uri of outsideUri) {
    it(`finds ${JSON.stringify(uri)} outside file:///workspace`, () =>
      assert.equal(within(uri, 'file:///workspace'), false))
  }

  const unclearUri = [
    '/workspace/a',
    'a',
    '',
    'file:///workspace/%2e%2e/etc',
    'file:///workspace//../etc',
    'file:///workspace//./..',
    'file:///workspace/%2E%2E%2Fetc',
    'file:///workspace/%252e%252e/etc',
    'file:///workspace\\..\\etc',
    'file:///workspace/a\n',
    'file:///work\tspace/a',
    'file:/workspace/a',
    'file:workspace/a',
    'file://evil/workspace/a',
    'http:///workspace/a',
    'file:///%77orkspace/a',
    'file:///C:/workspace',
    'file:////workspace/a',
    'file:///workspace/..;/etc',
    'file:///workspace/\ufe30/etc',
    'file:///WORKSPACE/a',
    'file:///workspace/a b',
  ]
  for (const uri of unclearUri) {
    it(`throws for ${JSON.stringify(uri)}, seen from file:///workspace`, () =>
      assert.throws(() => within(uri, 'file:///workspace'), UnclearError))
  }

  it('compares the scheme, host and port of other URIs', () => {
    const root = 'https://example.org/docs'
    assert.equal(within('https://EXAMPLE.org:443/docs/a', root), true)
    for (const uri of ['https://evil.test/docs/a', 'https://example.org/docs2', 'https://example.org/docs/../a'])
      assert.equal(within(uri, root), false, uri)
    // A request may be redirected to another scheme or port.
    for (const uri of [
      'http://example.org/docs/a',
      'https://example.org:8443/docs/a',
      'https://example.org@evil.test/docs/a',
      'https://vera@example.org/docs/a',
      'https://@example.org/docs/a',
      'https://:@example.org/docs/a',
      'https:///example.org/docs/a',
      'https://ex%61mple.org/docs/a',
      'https://example.org./docs/a',
      'https://example.org/docs/..;/a',
      'https://example.org//docs/a',
    ])
      assert.throws(() => within(uri, root), TypeError, uri)
  })

  for (const root of [
    'file:workspace',
    'mailto:a',
    'file:///work%2e',
    'C:\\work',
    'file:///a\\b',
    'https://vera@example.org/',
  ]) {
    it(`refuses the root ${JSON.stringify(root)}`, () => assert.throws(() => within('/a', root), TypeError))
  }

  it('returns an answer only where all readers agree: true if all are inside, false if all are outside', () => {
    const text = fc.array(fc.constantFrom(...PIECES), { maxLength: 10 }).map((parts) => parts.join(''))
    const answers = { true: 0, false: 0, unclear: 0 }
    fc.assert(
      fc.property(fc.constantFrom('', '/'), text, (start, rest) => {
        const file = start + rest
        const answer = answerOf(file)
        answers[`${answer}`]++
        if (answer === 'unclear') return
        for (const reading of readingsOf(file, answer))
          assert.equal(isInside(reading, answer), answer, `${file} is read as ${reading}`)
      }),
      runs(5000, 5000),
    )
    for (const [answer, count] of Object.entries(answers)) assert.ok(count > 50, `only ${count} texts were ${answer}`)
  })

  it('agrees with the resolving of POSIX paths', () => {
    const segment = fc.constantFrom('a', 'b', '..', '.', '')
    const text = fc.array(segment, { maxLength: 8 }).map((parts) => parts.join('/'))
    fc.assert(
      fc.property(text, text, (file, below) => {
        const root = path.posix.resolve('/', below)
        const full = path.posix.resolve(root, file)
        const isBelow = root === '/' || full === root || full.startsWith(`${root}/`)
        // A network path, `..` behind an empty name, or a relative path that leaves the root.
        const isUnclear = /^\/\/(?!\/)|\/\/(?:.*\/)?\.\.(?:\/|$)/.test(file) || (!file.startsWith('/') && !isBelow)
        if (isUnclear) assert.throws(() => within(file, root), UnclearError)
        else assert.equal(within(file, root), isBelow)
      }),
      runs(1000, 1000),
    )
  })
})

const PIECES = [
  '..',
  '.',
  '/',
  '/',
  '/',
  '%2e',
  '%2E',
  '%2f',
  '%5c',
  '%25',
  '2e',
  '%252e',
  '%32',
  '%%32%65',
  '\\',
  'a',
  'b',
  '+',
  '#',
  '?',
  '/workspace',
  'workspace',
  'WORK',
  'Workspace',
  'work',
  'space',
  '%77',
  'C:',
  'file:',
  '//',
  '~',
  ' ',
  '\0',
  '\n',
  ';x',
  '\u2025',
  '\uff0e',
  '\uff0f',
  '\uff37',
  '\u200d',
  '%c0%ae',
  '%e2%80%8d',
  'etc',
  '.\u0308',
  'o\u0308',
]

function answerOf(file: string): boolean | 'unclear' {
  try {
    return within(file, '/workspace')
  } catch {
    return 'unclear'
  }
}

/**
 * Returns the readings of a path by sloppy servers: decoded up to three times, normalised, with backslashes for
 * slashes, without its ends. A path outside must be outside for servers that confuse names, too.
 */
function readingsOf(file: string, answer: boolean): readonly string[] {
  const readings = new Set([file])
  const transforms: ((text: string) => string)[] = [
    (text) => text.replaceAll(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
    (text) => text.replaceAll('%c0%ae', '.'),
    (text) => text.normalize('NFKC'),
    (text) => text.replaceAll('\\', '/'),
    (text) => text.trim(),
    (text) => text.split('\0')[0] ?? '',
    (text) => text.split(/[?#]/)[0] ?? '',
    (text) => text.replace(/^[a-z]+:(?:\/\/)?/i, '/'),
    (text) => text.replace(/^~/, '/home'),
  ]
  if (!answer)
    transforms.push(
      (text) => text.toLowerCase(),
      (text) => text.replaceAll(/[. ]+(?=\/|$)/g, (end) => (/^\.\.?$/.test(end) ? end : '')),
      (text) => text.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, ''),
      (text) => text.normalize('NFD').replaceAll(/\p{M}/gu, ''),
      (text) => text.replaceAll(/;[^/]*/g, ''),
      (text) => text.replaceAll('+', ' '),
    )
  for (let round = 0; round < 3; round++)
    for (const text of Array.from(readings)) for (const transform of transforms) readings.add(transform(text))
  return [...readings]
}

/** Whether a file is inside: read from the folder itself where the answer is `true`, else from any of three folders. */
function isInside(file: string, answer: boolean): boolean {
  return (answer ? ['/workspace'] : ['/', '/workspace', '/home/vera']).some((from) => {
    const full = path.posix.resolve(from, file)
    return full === '/workspace' || full.startsWith('/workspace/')
  })
}

describe('host', () => {
  const table: readonly (readonly [url: string, host: string])[] = [
    ['https://example.org/a?b', 'example.org'],
    ['https://EXAMPLE.org:8443/', 'example.org'],
    ['https://example.org@evil.test/', 'evil.test'],
    ['https://example.org?@evil.test/', 'example.org'],
    ['https://vera:pass@EXAMPLE.org:8443/', 'example.org'],
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

  const ambiguous = [
    String.raw`https:\\evil.test\@example.org`,
    String.raw`https://evil.test\@example.org/`,
    'https://exam\tple.org/',
    'https://example.org\n',
    ' https://example.org/',
    'https://example.org/ a',
    'https:example.org',
    'https:/example.org',
    'https:///example.org/',
    'https://a@example.org@evil.test/',
    'https://%65xample.org/',
    'https://fa\u00df.example/',
    'https://exa\u200dmple.org/',
  ]
  for (const url of ambiguous) {
    it(`throws for ${JSON.stringify(url)}, of which readers find different hosts`, () => {
      assert.throws(() => host(url), TypeError)
    })
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
