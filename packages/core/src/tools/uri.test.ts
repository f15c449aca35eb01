import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findTemplateProblem, findUriProblem, isNormalUri, parseUriTemplate } from './uri.ts'

describe('isNormalUri', () => {
  const normal = [
    'file:///',
    'file:///a/b.md',
    'file:///a/b%20c',
    'file:///a(1)/b+c@d',
    'ssh://git@host/a',
    'db://a%3Ab',
    'https://xn--bcher-kva.de/%2B',
    'http://example.com/',
    'https://example.com:8443/a?b=c&d=%2F',
    'db://users/5',
    'db://users//5',
    'ui://chart',
    'urn:isbn:0451450523',
    'test://static-text',
    'http://[::1]/a',
  ]
  for (const uri of normal) it(`takes ${uri}`, () => assert.equal(isNormalUri(uri), true))

  const spelled: readonly (readonly [why: string, ...uris: string[]])[] = [
    ['dot segments', 'file:///a/../b', 'file:///./b', 'file:///a/..', 'http://h/a/./b', 'x:a/../b'],
    ['encoded dot segments', 'file:///a/%2E%2E/b', 'file:///a/%2e%2e/b', 'db://h/a%2F..%2Fb', 'db://h/..%5Cb'],
    ['needless encoding', 'file:///%61', 'db://h/a%7Eb'],
    ['encoding in lower case', 'db://h/a%2fb'],
    ['broken encoding', 'db://h/%', 'db://h/%4', 'db://h/%GG'],
    ['a scheme in upper case', 'FILE:///a', 'Http://h/a'],
    ['a host in upper case', 'http://Example.com/a', 'db://HOST/a'],
    ['a default or odd port', 'http://h:80/a', 'https://h:443/', 'http://h:/a', 'http://h:080/a', 'http://h:0080/'],
    ['an empty path', 'http://example.com', 'https://h?x=1'],
    ['a fragment or an empty query', 'db://h/a#b', 'file:///a#', 'db://h/a?'],
    ['another file URI', 'file:/a', 'file://localhost/a', 'file:///a//b', 'file:////a', 'file:///a?b', 'file:///a%2Fb'],
    ['a file of a host, which servers drop', 'file://host/a', 'file://user@/a', 'file://:0/a'],
    ['a slash after a file', 'file:///a/', 'file:///a/b/'],
    ['a file whose path has needless encoding', 'file:///a%2Bb', 'file:///%40a', 'file:///a%28b%29', 'file:///C%3A/a'],
    ['no host where URL parsers find one', 'https:/h/a', 'https:h/a', 'https:///h/a', 'wss:/h/a', 'ftp:////h/a'],
    [
      'a host in another spelling',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://[0:0:0:0:0:0:0:1]/',
      'https://%C3%BC/',
    ],
    ['a host with a dot at its end', 'https://h./a', 'https://h.:8443/a'],
    ['a user at a host', 'https://user@h/a', 'https://@h/a', 'https://a:b@h/a'],
    ['characters that URIs do not have', 'file:///a b', 'file:///ä', 'file:///a\\b', 'db://h/{a}', 'db://h/a%00'],
    ['no scheme', '', 'a', '/etc/passwd', '//h/a', '1a:b'],
    ['more than 2,048 characters', `file:///${'a'.repeat(2041)}`],
  ]
  for (const [why, ...uris] of spelled)
    it(`refuses ${why}`, () => {
      for (const uri of uris) assert.equal(isNormalUri(uri), false, uri)
    })
})

describe('parseUriTemplate', () => {
  const table: readonly (readonly [template: string, may: readonly string[], cannot: readonly string[]])[] = [
    ['db://users/{id}', ['db://users/5', 'db://users/'], ['db://users/5/x', 'db://other/5', 'db://users']],
    ['db://{table}/{id}.json', ['db://a/b.json'], ['db://a/b.xml', 'db://a.json']],
    ['file:///{+path}', ['file:///a', 'file:///a/b'], ['db://a']],
    ['file:///{+path}/end', ['file:///a/b/end'], ['file:///a/b/END', 'file:///end']],
    ['db://a/{id}/{+rest}', ['db://a/b/c/d', 'db://a/b/c'], ['db://b/b/c']],
    // Any other expression, and any other spelling, may be read by the server as it likes.
    ['db://a{?q}', ['db://b'], []],
    ['db://a/{id*}', ['db://b'], []],
    ['db://a/{id:3}', ['db://b'], []],
    ['db://a/{x,y}', ['db://b'], []],
    ['DB://a/{x}', ['db://b'], []],
    ['db://ä/{x}', ['db://b'], []],
    ['db://a/../{x}', ['db://b'], []],
  ]
  for (const [text, may, cannot] of table)
    it(`${text} may match ${may.join(', ')}${cannot.length > 0 ? ` and not ${cannot.join(', ')}` : ''}`, () => {
      const template = parseUriTemplate(text)
      for (const uri of may) assert.equal(template.mayMatch(uri), true, uri)
      for (const uri of cannot) assert.equal(template.mayMatch(uri), false, uri)
    })

  it('may match every URI whose spelling is not normal', () => {
    assert.equal(parseUriTemplate('db://users/{id}').mayMatch('DB://other/5'), true)
  })

  it('answers for hostile templates and URIs in time linear in both', () => {
    const hostile = [parseUriTemplate(`db://${'{a}x'.repeat(400)}y`), parseUriTemplate(`db://${'{+a}x'.repeat(400)}y`)]
    const uri = `db://${'x'.repeat(2000)}`
    const before = process.cpuUsage()
    for (let i = 0; i < 1000; i++) for (const { mayMatch } of hostile) assert.equal(mayMatch(uri), false)
    // CPU time, so that other processes do not count: about 25 ms here.
    assert.ok(process.cpuUsage(before).user < 2_000_000)
  })
})

describe('findTemplateProblem', () => {
  for (const [text, problem] of [
    ['db://a', /has no expression/],
    ['db://{}', /braces that do not match/],
    ['db://{a', /has no expression|braces/],
    ['db://{a}}', /braces that do not match/],
    ['db://{a{b}}', /braces that do not match/],
    ['{a}', /must begin with a scheme/],
    ['db://{a} b', /must not hold spaces/],
    [7, /must be a string/],
  ] as const)
    it(`refuses ${text}`, () => assert.match(findTemplateProblem(text) ?? '', problem))

  it('takes a template', () => assert.equal(findTemplateProblem('db://{table}/{+id}{?q}'), undefined))
})

describe('findUriProblem', () => {
  for (const [uri, problem] of [
    ['', /not empty/],
    ['a b:c', /must not hold spaces/],
    ['a:\u200bb', /must not hold spaces/],
    ['abc', /must begin with a scheme/],
    ['db://{a}', /must not hold "\{"/],
    [`db:${'a'.repeat(2048)}`, /at most 2048/],
  ] as const)
    it(`refuses ${uri.slice(0, 20)}`, () => assert.match(findUriProblem(uri) ?? '', problem))

  it('takes a URI that a server spells in its own way', () => {
    for (const uri of ['FILE:///a/../b', 'file:///Übung', 'db:x']) assert.equal(findUriProblem(uri), undefined)
  })
})
