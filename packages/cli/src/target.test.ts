import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname, networkInterfaces, tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { createApi } from './client.ts'
import { CliError } from './exit.ts'
import { writeKeys } from './project/keys-file.ts'
import { announce } from './project/running-file.ts'
import { findTarget } from './target.ts'
import { fakeIo } from './testing/fake-io.ts'

const SECRET = Buffer.alloc(32)
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex')

/** Enters a new folder. */
function enter(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-target-'))
  const before = process.cwd()
  t.after(() => {
    process.chdir(before)
    rmSync(folder, { recursive: true })
  })
  process.chdir(folder)
  return folder
}

function find(given: Parameters<typeof findTarget>[0], env: Readonly<Record<string, string>> = {}) {
  const { url, keys } = findTarget(given, fakeIo(env))
  return [url, keys[0]?.key, keys[0]?.from]
}

/** Returns every subset of the places, in their order. */
function subsets<Place>(places: readonly Place[]): readonly (readonly Place[])[] {
  const [place, ...others] = places
  if (place === undefined) return [[]]
  return subsets(others).flatMap((some) => [some, [place, ...some]])
}

const URLS = {
  option: 'http://a.example',
  variable: 'http://b.example',
  note: 'http://127.0.0.1:9124',
  file: 'http://127.0.0.1:9123',
} as const
const KEYS = {
  option: 'key-of-option',
  variable: 'key-of-variable',
  beside: 'key-beside-1',
  file: 'key-of-file-1',
} as const
const FROM = {
  option: '--key',
  variable: 'TOOLGATE_KEY',
  beside: '.toolgate/keys.json',
  file: 'toolgate.yaml:5',
} as const
const URL_PLACES = ['option', 'variable', 'note', 'file'] as const
const KEY_PLACES = ['option', 'variable', 'beside', 'file'] as const

describe('findTarget', () => {
  it('combines each place of the address with each place of the key, and takes the first of each', (t) => {
    enter(t)
    for (const urls of subsets(URL_PLACES)) {
      for (const keys of subsets(KEY_PLACES)) {
        rmSync('.toolgate', { recursive: true, force: true })
        const listen = `listen: { port: ${urls.includes('file') ? 9123 : 0} }`
        const caller = keys.includes('file')
          ? `  - user: boss\n    for: console\n    key: ${KEYS.file}`
          : '  - { user: agent, key: an-agents-key }\n\n'
        writeFileSync('toolgate.yaml', `servers: {}\ncallers:\n${caller}\n${listen}\n`)
        if (urls.includes('note')) announce('toolgate.yaml', { url: URLS.note, secret: SECRET })
        if (keys.includes('beside')) writeKeys('toolgate.yaml', [{ user: 'owner', for: 'console', key: KEYS.beside }])
        const given = {
          ...(urls.includes('option') && { url: URLS.option }),
          ...(keys.includes('option') && { key: KEYS.option }),
        }
        const env = {
          ...(urls.includes('variable') && { TOOLGATE_URL: URLS.variable }),
          ...(keys.includes('variable') && { TOOLGATE_KEY: KEYS.variable }),
        }
        const url = urls[0] === undefined ? 'http://127.0.0.1:8787' : URLS[urls[0]]
        const isHere = url.startsWith('http://127.')
        const first = keys[0]
        const expected =
          first === undefined
            ? [url, ...(isHere ? ['demo-console', 'the quickstart'] : [undefined, undefined])]
            : isHere || first === 'option' || first === 'variable'
              ? [url, KEYS[first], FROM[first]]
              : [url, undefined, undefined]
        assert.deepEqual(find(given, env), expected, `${urls.join()} × ${keys.join()}`)
        assert.deepEqual(find({ ...given, config: 'toolgate.yaml' }, env), expected, 'the same with --config')
      }
    }
  })

  it('gives another machine one key at most, and the demo key to this machine only', (t) => {
    enter(t)
    const keys = ['key-beside-1', 'key-beside-2'].map((key) => ({ user: 'owner', for: 'console', key }) as const)
    writeFileSync('toolgate.yaml', 'servers: {}\nlisten: { port: 9123 }\n')
    writeKeys('toolgate.yaml', keys)
    const count = (url: string) => findTarget({ url }, fakeIo()).keys.length
    for (const url of [
      'http://gateway.example',
      'http://127.0.0.1.example',
      'http://localhost.example',
      'http://10.0.0.1',
    ])
      assert.equal(count(url), 0, url)
    writeFileSync('toolgate.yaml', 'servers: {}\nlisten: { port: 9123 }\npublicUrl: https://tools.example\n')
    assert.equal(count('https://tools.example'), 1)
    assert.equal(count('http://tools.example'), 0)
    assert.equal(count('http://127.0.0.1:9123'), 2)
    for (const url of ['http://127.0.0.1:8787', 'http://localhost:9000', 'http://[::1]:8787', 'http://127.8.9.10'])
      assert.equal(count(url), 3, url)
    rmSync('.toolgate', { recursive: true })
    for (const url of ['http://gateway.example', 'http://10.0.0.1'])
      assert.deepEqual(find({ url }), [url, undefined, undefined])
  })

  it('sends no key to another machine that only a file of the folder names', (t) => {
    enter(t)
    const callers = 'callers: [{ user: boss, for: console, key: key-of-boss-1 }]\n'
    const hosts = ['host: evil.example, port: 443', 'host: 192.0.2.7, port: 80', 'host: "2001:db8::7", port: 80']
    const folders = [
      ...hosts.map((listen) => () => writeFileSync('toolgate.yaml', `servers: {}\nlisten: { ${listen} }\n${callers}`)),
      () => {
        writeFileSync('toolgate.yaml', `servers: {}\n${callers}`)
        announce('toolgate.yaml', { url: 'https://evil.example', secret: SECRET })
      },
    ]
    for (const make of folders) {
      make()
      for (const [given, env] of [
        [{}, {}],
        [{ key: 'my-key' }, {}],
        [{}, { TOOLGATE_KEY: 'my-key' }],
      ] as const) {
        const { url, keys, keyHint } = findTarget(given, fakeIo(env))
        assert.deepEqual(keys, [])
        assert.equal(
          keyHint,
          `A file of this folder names ${url}, which is another machine: give the address with --url.`,
        )
        // Whoever gives the address says that it may have the key.
        if (Object.keys({ ...given, ...env }).length > 0)
          assert.equal(findTarget({ ...given, url }, fakeIo(env)).keys[0]?.key, 'my-key')
      }
    }
  })

  it('takes an address of this machine for what it is', (t) => {
    enter(t)
    const [address = '127.0.0.1'] = Object.values(networkInterfaces()).flatMap((all = []) =>
      all.flatMap(({ address: one, family }) => (family === 'IPv4' ? [one] : [])),
    )
    for (const host of [address, hostname(), '0.0.0.0']) {
      writeFileSync('toolgate.yaml', `servers: {}\nlisten: { host: ${host}, port: 9123 }\n`)
      assert.equal(find({ key: 'my-key' })[1], 'my-key', host)
    }
  })

  it('finds gateway and keys of a file that has a mistake now, or leaves the port to the machine', (t) => {
    enter(t)
    const callers = 'callers: [{ user: boss, for: console, key: key-of-boss-1 }]'
    announce('toolgate.yaml', { url: 'http://127.0.0.1:9123', secret: SECRET })
    for (const text of [
      'listen: { port: 9123 }\nfoo: 1\n',
      'servers: {}\nlisten: { port: 0 }\n',
      'servers: { a: { command: "${NO}" } }\n',
    ])
      for (const given of [{}, { config: 'toolgate.yaml' }]) {
        writeFileSync('toolgate.yaml', `${text}${callers}`)
        assert.deepEqual(find(given).slice(0, 2), ['http://127.0.0.1:9123', 'key-of-boss-1'], text)
      }
    writeFileSync('toolgate.yaml', 'servers: [\n')
    assert.equal(find({})[0], 'http://127.0.0.1:9123')
    assert.throws(
      () => find({ config: 'missing.yaml' }),
      (error) => error instanceof CliError && error.exit === 'usage',
    )
  })

  it('stays who it is when the file gets another key', (t) => {
    enter(t)
    const row = (user: string) => `  - { user: ${user}, for: console, key: key-of-${user}-1 }\n`
    writeFileSync('toolgate.yaml', `servers: {}\ncallers:\n${row('new')}${row('old')}`)
    assert.equal(find({})[1], 'key-of-new-1')
    announce('toolgate.yaml', { url: URLS.note, secret: SECRET, consoleHash: hashOf('key-of-old-1') })
    assert.equal(find({})[1], 'key-of-old-1')
    writeKeys('toolgate.yaml', [{ user: 'owner', for: 'console', key: 'key-of-owner-1' }])
    assert.equal(find({})[1], 'key-of-owner-1')
  })

  it('names a key that no header can hold by its place, and never prints it', (t) => {
    enter(t)
    mkdirSync('.toolgate')
    const bad: readonly (readonly [string, string])[] = [
      ['geheim-1\n', 'a line break (character 9 of 9)'],
      ['geheim-ü-1', 'a non-ASCII character (character 8 of 10)'],
      ['geheim-🔑', 'a non-ASCII character (character 8 of 8)'],
      ['geheim 1234', 'a space (character 7 of 11)'],
      ['geheim-\u007f', 'a control character (character 8 of 8)'],
    ]
    for (const [key, kind] of bad) {
      const yaml = JSON.stringify(key)
      const tries: readonly (readonly [string, () => unknown])[] = [
        ['--key', () => find({ key })],
        ['TOOLGATE_KEY', () => find({}, { TOOLGATE_KEY: key })],
        [
          'toolgate.yaml:2',
          () => {
            writeFileSync('toolgate.yaml', `servers: {}\ncallers: [{ user: boss, for: console, key: ${yaml} }]\n`)
            find({})
          },
        ],
      ]
      for (const [place, run] of tries)
        assert.throws(run, (error) => {
          assert.ok(error instanceof CliError)
          assert.equal(error.message, `The key in ${place} has ${kind}.`)
          assert.ok(!`${error.message}${error.hint}`.includes('geheim'))
          return true
        })
    }
    // It must not be in the way of a key that works.
    writeKeys('toolgate.yaml', [{ user: 'owner', for: 'console', key: 'key-of-owner-1' }])
    assert.equal(find({})[1], 'key-of-owner-1')
  })
})

describe('the identity of a command', () => {
  /** Serves `/api/session`, and knows some keys. */
  async function gatewayOf(t: TestContext, known: readonly string[]) {
    const seen: string[] = []
    const server = createServer((request, response) => {
      const key = request.headers.authorization?.slice('Bearer '.length) ?? ''
      seen.push(key)
      const fault = { error: { code: 'unauthenticated', message: 'The key is not known.' } }
      response
        .writeHead(known.includes(key) ? 200 : 401)
        .end(JSON.stringify(known.includes(key) ? { user: 'x' } : fault))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
  }

  const FILE = `servers: {}
callers:
  - { user: boss-acme, tenant: acme, for: console, key: key-of-acme-1 }
  - { user: boss, for: console, key: key-of-boss-1 }
`

  it('is said once on stderr if there are several console keys, but not to programs', async (t) => {
    enter(t)
    const { url } = await gatewayOf(t, ['key-of-acme-1', 'key-of-boss-1'])
    writeFileSync('toolgate.yaml', FILE)
    announce('toolgate.yaml', { url, secret: SECRET })
    const say = async (env = {}, given = {}) => {
      const io = fakeIo(env)
      const api = createApi(findTarget(given, io))
      await api.session()
      await api.session()
      return [io.out(), io.err()]
    }
    assert.deepEqual(await say(), ['', 'as boss-acme of acme (key in toolgate.yaml:3)\n'])
    assert.deepEqual(await say({ TOOLGATE_KEY: 'key-of-boss-1' }), ['', 'as boss (key in TOOLGATE_KEY)\n'])
    assert.deepEqual(await say({}, { key: 'key-of-boss-1' }), ['', 'as boss (key in --key)\n'])
    assert.deepEqual(await say({}, { json: true }), ['', ''])
    writeFileSync('toolgate.yaml', FILE.split('\n').slice(0, 3).join('\n'))
    assert.deepEqual(await say(), ['', ''])
  })

  it('falls back to a key of the files that the gateway knows, and says so', async (t) => {
    enter(t)
    const { url, seen } = await gatewayOf(t, ['key-of-boss-1'])
    writeFileSync('toolgate.yaml', FILE)
    announce('toolgate.yaml', { url, secret: SECRET, pid: 12_345 })
    const io = fakeIo()
    const api = createApi(findTarget({}, io))
    await api.session()
    await api.session()
    assert.deepEqual(seen, ['key-of-acme-1', 'key-of-boss-1', 'key-of-boss-1'])
    assert.equal(io.err(), 'as boss (key in toolgate.yaml:4); the gateway does not know the key in toolgate.yaml:3\n')
    // A key that the user named is the only one.
    const asked = createApi(findTarget({ key: 'wrong-key-1' }, io)).session()
    await assert.rejects(asked, (error) => error instanceof CliError && error.exit === 'key')
    assert.deepEqual(seen.slice(3), ['wrong-key-1'])
  })

  it('says how to make new keys known if the gateway knows none', async (t) => {
    enter(t)
    const { url } = await gatewayOf(t, [])
    writeFileSync('toolgate.yaml', FILE)
    announce('toolgate.yaml', { url, secret: SECRET, pid: 12_345 })
    await assert.rejects(createApi(findTarget({}, fakeIo())).session(), (error) => {
      assert.ok(error instanceof CliError)
      assert.match(error.hint ?? '', /^The key is that in toolgate\.yaml:3, toolgate\.yaml:4\. .*\n.*kill -HUP 12345$/)
      return true
    })
  })
})
