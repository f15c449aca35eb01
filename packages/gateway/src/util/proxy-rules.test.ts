import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isException, parseProxy, proxiesOf, proxyFor } from './proxy-rules.ts'

const HTTP = 'http://proxy.example.com:3128'

describe('proxiesOf', () => {
  const cases: readonly (readonly [string, Record<string, string>, string | undefined, string | undefined])[] = [
    ['nothing', {}, undefined, undefined],
    ['both', { HTTP_PROXY: 'http://a:1', HTTPS_PROXY: 'http://b:2' }, 'http://a:1', 'http://b:2'],
    ['lower case', { http_proxy: 'http://a:1', https_proxy: 'http://b:2' }, 'http://a:1', 'http://b:2'],
    ['lower case before upper case', { https_proxy: 'http://a:1', HTTPS_PROXY: 'http://b:2' }, undefined, 'http://a:1'],
    ['all', { ALL_PROXY: 'http://a:1' }, 'http://a:1', 'http://a:1'],
    ['all in lower case', { all_proxy: 'http://a:1' }, 'http://a:1', 'http://a:1'],
    ['one of its own before all', { ALL_PROXY: 'http://a:1', HTTPS_PROXY: 'http://b:2' }, 'http://a:1', 'http://b:2'],
    ['http alone, which is not for https', { HTTP_PROXY: 'http://a:1' }, 'http://a:1', undefined],
    [
      'an empty one, which means none',
      { https_proxy: '', HTTPS_PROXY: 'http://b:2', ALL_PROXY: 'http://c:3' },
      'http://c:3',
      undefined,
    ],
  ]
  for (const [what, env, http, https] of cases)
    it(`reads ${what}`, () => {
      const rules = proxiesOf(env)
      assert.equal(rules?.http?.url, http)
      assert.equal(rules?.https?.url, https)
    })

  it('names the variable', () => {
    assert.equal(proxiesOf({ ALL_PROXY: HTTP })?.https?.from, 'ALL_PROXY')
    assert.equal(proxiesOf({ https_proxy: HTTP })?.https?.from, 'https_proxy')
  })
})

describe('proxyFor', () => {
  const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    // NO_PROXY, what is reached directly, and what is not.
    [
      '',
      [
        'http://localhost/',
        'https://127.0.0.1:8443/',
        'http://127.9.9.9/',
        'http://[::1]/',
        'http://a.localhost/',
        'http://0.0.0.0:9000/',
        'http://[::]/',
        'http://[::ffff:127.0.0.1]/',
      ],
      ['https://example.com/', 'http://10.0.0.1/'],
    ],
    ['*', ['https://example.com/', 'http://10.0.0.1/', 'http://[2001:db8::1]/'], []],
    [
      'example.com',
      ['https://example.com/', 'https://a.example.com/', 'https://EXAMPLE.com./'],
      ['https://notexample.com/', 'https://example.com.evil.example/', 'https://example.org/'],
    ],
    ['.example.com', ['https://example.com/', 'https://a.b.example.com/'], ['https://notexample.com/']],
    ['*.example.com', ['https://a.example.com/'], ['https://example.com/', 'https://notexample.com/']],
    ['EXAMPLE.com.', ['https://example.com/'], []],
    ['example.com:8443', ['https://example.com:8443/'], ['https://example.com/', 'https://example.com:8444/']],
    ['example.com:443', ['https://example.com/'], ['http://example.com/', 'https://example.com:8443/']],
    [
      'a.example, b.example  c.example',
      ['https://a.example/', 'https://b.example/', 'https://c.example/'],
      ['https://d.example/'],
    ],
    [
      '10.0.0.0/8',
      ['http://10.1.2.3/', 'https://10.255.255.255:1/', 'http://0x0a010203/'],
      ['http://11.0.0.1/', 'https://a.10.0.0.0/'.replace('10.0.0.0', 'example')],
    ],
    ['192.168.0.7', ['http://192.168.0.7/'], ['http://192.168.0.70/', 'http://192.168.0.8/']],
    ['192.168.*', ['http://192.168.3.4/'], ['http://192.169.3.4/']],
    ['2001:db8::/32', ['http://[2001:db8::5]/'], ['http://[2001:db9::5]/']],
    ['[2001:db8::1]:8080', ['http://[2001:db8::1]:8080/'], ['http://[2001:db8::1]/']],
    ['2001:DB8:0:0::1', ['http://[2001:db8::1]/'], ['http://[2001:db8::2]/']],
    ['http://a.example/', ['https://a.example/'], []],
    ['10.0.0.0/99 ,, [x] a(b', [], ['http://10.0.0.1/', 'https://x/', 'https://a/']],
  ]
  for (const [text, direct, through] of cases)
    it(`reads NO_PROXY=${text}`, () => {
      const rules = proxiesOf({ ALL_PROXY: HTTP, NO_PROXY: text })
      for (const url of direct) assert.equal(proxyFor(rules, new URL(url)), undefined, url)
      for (const url of through) assert.equal(proxyFor(rules, new URL(url))?.url, HTTP, url)
    })

  it('lets the lower case of NO_PROXY decide', () =>
    assert.equal(
      proxyFor(proxiesOf({ ALL_PROXY: HTTP, no_proxy: '', NO_PROXY: '*' }), new URL('https://example.com'))?.url,
      HTTP,
    ))
})

describe('parseProxy', () => {
  for (const [text, expected] of [
    ['http://proxy.example.com:3128', 'http://proxy.example.com:3128/'],
    ['https://proxy.example.com', 'https://proxy.example.com/'],
    ['proxy.example.com:3128', 'http://proxy.example.com:3128/'],
    ['vera:secret@proxy:3128', 'http://vera:secret@proxy:3128/'],
    ['socks5://proxy:1080', undefined],
    ['http://proxy/path', undefined],
    ['http://proxy?x', undefined],
    ['http://', undefined],
    ['', undefined],
  ] as const)
    it(`reads "${text}"`, () => assert.equal(parseProxy(text)?.href, expected))
})

describe('isException', () => {
  for (const text of ['*', 'a.example', '.a.example', 'a.example:80', '10.0.0.0/8', '::1', '[::1]:80'])
    it(`takes "${text}"`, () => assert.equal(isException(text), true))
  for (const text of ['', 'a b', 'a:b:c', 'a.example/path'])
    it(`refuses "${text}"`, () => assert.equal(isException(text), false))
})
