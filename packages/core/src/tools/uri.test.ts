import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findUriProblem, isNormalUri, readingOf, toNormalUri } from './uri.ts'

describe('isNormalUri', () => {
  const normal = [
    'file:///',
    'file:///a/b.md',
    'file:///a/b%20c',
    'file:///a(1)/b+c@d',
    'ssh://git@host/a',
    'db://a%3Ab',
    'https://xn--bcher-kva.de/+',
    'http://example.com/',
    'https://example.com:8443/a?b=c&d=%2F',
    'db://users/5',
    'jira://PROJ-123',
    'db://HOST/a',
    'notes://wiki/Secret_(x)',
    'notes://caf%C3%A9/%E2%82%AC%20and%23',
    'notes://h/100%25',
    'memo:///a',
    'db://h/a?q=a%20b&r=%2Fc%3Ad&wsdl',
    'proxy://page/https://example.com/a?b=c',
    'web:https://h/',
    'file:///a/.b/c..d',
    'wiki://page/Acme_Inc.',
    'urn:example:a:b',
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
    ['a host in upper case', 'http://Example.com/a', 'wss://H/a', 'ftp://H/', 'https://H:8443/'],
    ['a default or odd port', 'http://h:80/a', 'https://h:443/', 'http://h:/a', 'http://h:080/a', 'http://h:0080/'],
    ['an empty path', 'http://example.com', 'https://h?x=1'],
    ['a fragment or an empty query', 'db://h/a#b', 'file:///a#', 'db://h/a?'],
    ['another file URI', 'file:/a', 'file://localhost/a', 'file:///a//b', 'file:////a', 'file:///a?b', 'file:///a%2Fb'],
    ['a file of a host, which servers drop', 'file://host/a', 'file://user@/a', 'file://:0/a'],
    ['a slash after a file', 'file:///a/', 'file:///a/b/'],
    ['an empty segment', 'db://users//5', 'notes://h//private/a', 'https://h//a', 'db:////a', 'x:a//b'],
    ['a slash at the end', 'db://users/', 'db://h/a/', 'https://h/a/', 'x:a/', 'db://'],
    ['a path without the slashes of an authority', 'db:/a', 'notes:/private/a'],
    [
      'what may stand in a path, encoded',
      'notes://h/Secret_%28x%29',
      'db://h/a%40b',
      'https://h/%2B',
      'x:a%3Ab',
      'db://h/%21',
    ],
    ['an encoded slash', 'notes://h/private%2Fa', 'notes://private%2Fa', 'https://h/a%2Fb', 'db://h/a%5Cb', 'x:a%2Fb'],
    [
      'an authority with needless encoding',
      'notes://Secret_%28x%29',
      'ssh://git%40host/a',
      'db://h%3A80/a',
      'db://@h/a',
    ],
    ['a user or a password that is empty', 'ssh://:@host/a', 'ssh://git:@host/a'],
    ['double encoding', 'notes://h/%2528x', 'notes://h/%252Fa', 'file:///a%252e', 'notes://%2541'],
    ['bytes that are no UTF-8', 'notes://h/%FF', 'notes://h/%C0%AFa', 'notes://h/%ED%A0%80', 'db://h/a?b=%E9'],
    ['letters that are not in the form NFC', 'notes://h/re%CC%81sume%CC%81', 'file:///u%CC%88', 'db://h/%E2%84%AB'],
    ['encoded control characters', 'db://h%00/a', 'db://h/a?b=%0A', 'db://h/%7F'],
    ['brackets outside a host', 'db://h/a[1]', 'db://h/a?b[1]=c', 'db://[a/b'],
    [
      'a query in another form',
      'db://h/a?b=/c',
      'db://h/a?b=c+d',
      'db://h/a?b=%28c%29',
      'db://h/a?b=',
      'db://h/a?b&&c',
      'db://h/a?b=c=d',
    ],
    [
      'an address in a path in another form',
      'proxy://h/https:/e.com/a',
      'proxy://h/https://E.com/a',
      'proxy://h/HTTPS:e.com',
      'web:https://h/a/../b',
    ],
    [
      'a file name with dots or blanks at its end, which Windows drops',
      'file:///a/secret.',
      'file:///a/secret.%20',
      'file:///a./b',
    ],
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

describe('isNormalUri of one encoded character', () => {
  it('is what RFC 3986 reserves or does not have, and no control character', () => {
    for (let byte = 0x21; byte < 0x7f; byte++) {
      const code = `%${byte.toString(16).toUpperCase()}`
      const isNeeded = /["#%<>?[\]^`{|}]/.test(String.fromCharCode(byte))
      assert.equal(isNormalUri(`db://h/a${code}b`), isNeeded, code)
    }
  })
})

describe('toNormalUri', () => {
  for (const [normal, ...others] of [
    ['notes://h/Secret_(x)', 'notes://h/Secret_%28x%29', 'notes://h/%53ecret_(x%29'],
    ["db://h/!$&'()*+,:;=@-._~", 'db://h/%21%24%26%27%28%29%2A%2B%2C%3A%3B%3D%40%2D%2E%5F%7E'],
    ['db://h/%C3%BC%20%3F%23%25', 'db://h/%c3%bc%20%3f%23%25'],
    ['db://h/a?b=%2Fc%3Ad%2Ce%3F%40%24', 'db://h/a?b=/c:d,e?@$', 'db://h/a?%62=%2fc:d%2ce%3f@$'],
    ["db://h/a?b=!'()*&c=%26%3D%2B%3B", 'db://h/a?b=%21%27%28%29%2A&c=%26%3d%2b%3b'],
    ['jira://A(1)', 'jira://A%281%29'],
    ['mail://a@b.de', 'mail://a%40b.de'],
    ['file:///C:/a', 'file:///C%3A/a', 'file:///C%3a/%61'],
    ['web://page/https://h/a:b?c=%2Fd', 'web://page/https%3A//h/a%3Ab?c=/d'],
    ['https://example.com/A?b=C', 'HTTPS://Example.COM/A?b=C', 'https://EXAMPLE.com/%41?%62=C'],
    ['wss://h:8443/A', 'WSS://H:8443/A'],
  ] as const)
    it(`is ${normal} for all that differ from it by needless coding`, () => {
      for (const uri of [normal, ...others]) assert.equal(toNormalUri(uri), normal, uri)
    })

  for (const [why, ...uris] of [
    ['slashes', 'db://h/a%2Fb', 'db://h/a%2fb', 'db://h/a%5cb', 'db://h%2fa', 'x:%2fa'],
    ['dot segments', 'db://h/%2e%2e/a', 'db://h/.%2E/a', 'db://h/a/%2e', 'file:///a%2e', 'web://p/https://h/%2e./a'],
    ['double coding', 'db://h/%2541', 'db://h/%25%34%31', 'db://h/%25%32%35%34%31', 'db://h/%252f'],
    ['other bytes', 'db://h/%00', 'db://h/%0a', 'db://h/%7f', 'db://h/%ff', 'db://h/%c0%af', 'db://h/%65%cc%81'],
    ['other segments', 'db://h//%61', 'db://h/%61/', 'db:/%61', 'file:/%61', 'file://localhost/%61'],
    [
      'delimiters',
      'db://h/a?b=%63+d',
      'db://h/a?b=c;d',
      'db://h/a?b=c=d',
      'db://h/a?b=',
      'db://h/a?b[%31]=c',
      'db://h/%61#',
    ],
    [
      'hosts',
      'https://%68/a',
      'https://u%40h/a',
      'https://h%3A443/',
      'https://h%2e/a',
      'db://h%3A80/a',
      'db://u%40v@h',
    ],
    ['schemes', '%64b://h/a', 'DB://h/%61', 'HTTPS:/h/a', 'FILE:///%61'],
    ['ports and paths of hosts', 'HTTPS://H:443/a', 'HTTP://H', 'HTTPS://U@h/a', 'HTTPS://H./a'],
    ['drives of Windows', 'file:///C%7C/a', 'file:///c%7ca'],
    ['streams of Windows', 'file:///a::$DATA', 'file:///a%3A%3A%24DATA', 'file:///a:s:$DATA/b'],
    ['what is no code', 'db://h/%', 'db://h/%4', 'db://h/%zz', 'db://h/%%34%31'],
    ['long texts', `db://h/${'%61'.repeat(700)}`, `db://h/a?b=${'/'.repeat(700)}`],
  ] as const)
    it(`is nothing for ${why} in another spelling`, () => {
      for (const uri of uris) assert.equal(toNormalUri(uri), undefined, uri)
    })
})

describe('the authority of a scheme without hosts', () => {
  for (const uri of ['jira://PROJ-123', 's3://Bucket/Key', 'db://User@HOST:5432/T', 'urn:ISBN:0-X', 'mailto:A@B.de'])
    it(`keeps the case of ${uri}`, () => assert.equal(toNormalUri(uri), uri))
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

describe('readingOf', () => {
  const alike: readonly (readonly string[])[] = [
    ['notes://h/Secret_(x)', 'NOTES://h/secret_%28x%29', 'notes://h/Secret_%2528x%2529', 'notes://h//Secret_(x)/'],
    ['notes://h/private/a', 'notes://h/private%2Fa', 'notes://h/x/../private/a', 'notes://h/x%2F..%2Fprivate%5Ca#f'],
    ['notes:///private/a', 'notes://private/a', 'notes:/private/a', 'notes:private/a', 'notes:////private/a'],
    ['notes://h/caf%C3%A9', 'notes://h/café', 'notes://h/cafe%CC%81', 'notes://h/cafe\u0301'],
    ['file:///a', 'file://localhost/a', 'file:/a/', 'file:///a?b'],
  ]
  for (const [first = '', ...others] of alike)
    it(`is the same for all spellings of ${first}`, () => {
      for (const uri of others) assert.equal(readingOf(uri), readingOf(first), uri)
    })
})
