import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { META } from '@toolgate/mcp'
import { decodeHeader, readMessage } from './envelope.ts'
import { RPC_ERRORS, RpcFault, type RpcRule } from '../model/protocol.ts'

const VERSION = '2026-07-28'
const META_OK = {
  [META.protocolVersion]: VERSION,
  [META.clientInfo]: { name: 'test', version: '1' },
  [META.clientCapabilities]: {},
}
const HEADERS_OK = { 'mcp-protocol-version': VERSION, 'mcp-method': 'tools/call', 'mcp-name': 'files__read' }
const BODY_OK = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'files__read', arguments: {}, _meta: META_OK },
}

type Body = Readonly<Record<string, unknown>>
type Headers = Readonly<Record<string, string | string[] | undefined>>
interface Change {
  readonly body?: Body
  readonly params?: Body
  readonly meta?: Body
  readonly headers?: Headers
}

/** Returns the correct call with some parts replaced; `undefined` removes a part. */
function changed({ body, params, meta, headers }: Change): [unknown, Headers] {
  const _meta = without({ ...META_OK, ...meta })
  const whole = { ...BODY_OK, params: without({ ...BODY_OK.params, _meta, ...params }), ...body }
  return [without(whole), without({ ...HEADERS_OK, ...headers }) as Headers]
}

function without(object: Body): Body {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))
}

function faultOf([body, headers]: [unknown, Headers]): RpcFault {
  try {
    readMessage(body, headers)
  } catch (error) {
    if (error instanceof RpcFault) return error
    throw error
  }
  throw new assert.AssertionError({ message: `was read: ${JSON.stringify(body)}` })
}

const MAX_LENGTHS: readonly (readonly [string, number, RpcRule, (text: string) => Change])[] = [
  ['method', 512, 'body_not_message', (text) => ({ body: { method: text }, headers: { 'mcp-method': text } })],
  ['id', 256, 'body_not_message', (text) => ({ body: { id: text } })],
  ['params.name', 512, 'params_invalid', (text) => ({ params: { name: text }, headers: { 'mcp-name': text } })],
  ['params.cursor', 512, 'params_invalid', (text) => ({ params: { cursor: text } })],
  ['params.requestId', 256, 'body_not_message', (text) => ({ params: { requestId: text } })],
  ['params._meta.progressToken', 256, 'body_not_message', (text) => ({ meta: { progressToken: text } })],
]

const LEGACY_LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

describe('readMessage', () => {
  for (const [field, max, rule, change] of MAX_LENGTHS) {
    it(`refuses ${field} of more than ${max} characters, in both eras, and names the limit`, () => {
      const legacy = { [META.protocolVersion]: undefined }
      for (const meta of [{}, legacy]) {
        const of = (text: string) => {
          const [body, headers] = changed({ ...change(text), meta: { ...meta, ...change(text).meta } })
          return [body, meta === legacy ? {} : headers] as [unknown, Headers]
        }
        assert.doesNotThrow(() => readMessage(...of('x'.repeat(max))))
        const fault = faultOf(of('x'.repeat(max + 1)))
        assert.equal(fault.rule, rule)
        assert.equal(fault.message, `${field} is longer than ${max} characters.`)
      }
    })
  }

  it('refuses a version of the envelope that is too long, and does not echo it', () => {
    const fault = faultOf(changed({ meta: { [META.protocolVersion]: 'x'.repeat(513) } }))
    assert.equal(fault.rule, 'params_invalid')
    assert.ok(fault.message.length < 100)
  })

  it('reads a correct request of the modern revision', () => {
    assert.deepEqual(readMessage(...changed({})), {
      era: 'modern',
      kind: 'request',
      id: 1,
      method: 'tools/call',
      params: BODY_OK.params,
    })
  })

  describe('takes the era from the envelope, or from the header without one', () => {
    const cases: readonly [string, unknown, Headers, 'legacy' | 'modern' | RpcRule][] = [
      ['no envelope, no header', LEGACY_LIST, {}, 'legacy'],
      ['no envelope, a header of before', LEGACY_LIST, { 'mcp-protocol-version': '2025-06-18' }, 'legacy'],
      ['no envelope, a header of nobody', LEGACY_LIST, { 'mcp-protocol-version': 'x' }, 'legacy'],
      ['no envelope, a modern header', LEGACY_LIST, { 'mcp-protocol-version': VERSION }, 'envelope_invalid'],
      ['_meta without a version', { ...LEGACY_LIST, params: { _meta: { progressToken: 1 } } }, {}, 'legacy'],
      ['an inherited version', { ...LEGACY_LIST, params: { _meta: Object.create(META_OK) } }, {}, 'legacy'],
      ['an envelope in a list', { ...LEGACY_LIST, params: { _meta: [META_OK] } }, {}, 'body_not_message'],
      ['an envelope, no header', { ...LEGACY_LIST, params: { _meta: META_OK } }, {}, 'header_mismatch'],
      [
        'an envelope, an old header',
        ...changed({ headers: { 'mcp-protocol-version': '2025-11-25' } }),
        'header_mismatch',
      ],
      ['a response', { jsonrpc: '2.0', id: 1, result: {} }, {}, 'legacy'],
      ['a response, a modern header', { jsonrpc: '2.0', id: 1, result: {} }, HEADERS_OK, 'body_not_message'],
    ]
    for (const [shows, body, headers, expected] of cases) {
      it(`${shows}: ${expected}`, () => {
        if (expected === 'legacy' || expected === 'modern') assert.equal(readMessage(body, headers).era, expected)
        else assert.equal(faultOf([body, headers]).rule, expected)
      })
    }
  })

  describe('treats optional members that are null as absent', () => {
    const cases: readonly [string, object, object][] = [
      ['params', { ...LEGACY_LIST, params: null }, LEGACY_LIST],
      ['_meta', { ...LEGACY_LIST, params: { _meta: null } }, { ...LEGACY_LIST, params: {} }],
      [
        'a progress token',
        { ...LEGACY_LIST, params: { _meta: { progressToken: null } } },
        { ...LEGACY_LIST, params: { _meta: {} } },
      ],
      [
        'a progress token, but no member that another party named',
        { ...LEGACY_LIST, params: { _meta: { progressToken: null, 'org.example/x': null } } },
        { ...LEGACY_LIST, params: { _meta: { 'org.example/x': null } } },
      ],
      ['a cursor', { ...LEGACY_LIST, params: { cursor: null } }, { ...LEGACY_LIST, params: {} }],
      [
        'arguments',
        { ...LEGACY_LIST, params: { name: 'x', arguments: null } },
        { ...LEGACY_LIST, params: { name: 'x' } },
      ],
      ['the result of a request', { ...LEGACY_LIST, result: null, error: null }, LEGACY_LIST],
      [
        'the id of a notification',
        { jsonrpc: '2.0', id: null, method: 'notifications/initialized' },
        { jsonrpc: '2.0', method: 'notifications/initialized' },
      ],
      [
        'capabilities',
        { ...LEGACY_LIST, params: { capabilities: { roots: null } } },
        { ...LEGACY_LIST, params: { capabilities: {} } },
      ],
      [
        'the other half of an answer',
        { jsonrpc: '2.0', id: 1, method: null, result: { action: 'decline', content: null }, error: null },
        { jsonrpc: '2.0', id: 1, result: { action: 'decline' } },
      ],
      [
        'annotations in an answer',
        { jsonrpc: '2.0', id: 1, result: { content: { type: 'text', text: 'x', annotations: null } } },
        { jsonrpc: '2.0', id: 1, result: { content: { type: 'text', text: 'x' } } },
      ],
    ]
    for (const [shows, sent, read] of cases)
      it(shows, () => assert.deepEqual(readMessage(sent, {}), { era: 'legacy', message: read }))

    it('keeps null in the arguments of a tool, which are data', () => {
      const sent = { ...LEGACY_LIST, params: { name: 'x', arguments: { a: null } } }
      assert.equal((readMessage(sent, {}) as { message: unknown }).message, sent)
    })

    it('leaves them out of answers within a request of the modern revision', () => {
      const answers = { name: { action: 'decline', content: null }, other: { action: 'accept', content: { a: null } } }
      const read = readMessage(...changed({ params: { inputResponses: answers } }))
      assert.deepEqual((read as unknown as { params: { inputResponses: unknown } }).params.inputResponses, {
        name: { action: 'decline' },
        other: { action: 'accept', content: {} },
      })
    })
  })

  describe('refuses a body that is not a single JSON-RPC message, in every era', () => {
    const refused: readonly [string, unknown, RpcRule, RegExp][] = [
      ['a batch', [BODY_OK], 'batch_refused', /Batches are not served/],
      ['an empty batch', [], 'batch_refused', /one message/],
      ['null', null, 'body_not_message', /not an object/],
      ['a text', 'tools/list', 'body_not_message', /not an object/],
      ['a number', 1, 'body_not_message', /not an object/],
      ['nothing in it', {}, 'body_not_message', /"jsonrpc" must be/],
      ['another jsonrpc', { ...LEGACY_LIST, jsonrpc: '1.0' }, 'body_not_message', /"jsonrpc" must be/],
      ['jsonrpc as a number', { ...LEGACY_LIST, jsonrpc: 2 }, 'body_not_message', /"jsonrpc" must be/],
      ['a method that is no string', { ...LEGACY_LIST, method: ['tools/call'] }, 'body_not_message', /"method"/],
      ['an empty method', { ...LEGACY_LIST, method: '' }, 'body_not_message', /"method" must not be empty/],
      [
        'an empty method without an id',
        { jsonrpc: '2.0', method: '' },
        'body_not_message',
        /"method" must not be empty/,
      ],
      ['a method that is null', { ...LEGACY_LIST, method: null }, 'body_not_message', /"method"/],
      ['id null', { ...LEGACY_LIST, id: null }, 'body_not_message', /"id"/],
      ['an id with a fraction', { ...LEGACY_LIST, id: 1.5 }, 'body_not_message', /"id"/],
      ['an id beyond the safe numbers', { ...LEGACY_LIST, id: 2 ** 53 }, 'body_not_message', /"id"/],
      ['an id that is an object', { ...LEGACY_LIST, id: {} }, 'body_not_message', /"id"/],
      ['params in a list', { ...LEGACY_LIST, params: [] }, 'body_not_message', /"params"/],
    ]
    for (const [shows, body, rule, message] of refused) {
      for (const headers of [{}, HEADERS_OK]) {
        it(`${shows}, with ${headers === HEADERS_OK ? 'modern' : 'no'} headers`, () => {
          const fault = faultOf([body, headers])
          assert.equal(fault.rule, rule)
          assert.match(fault.message, message)
        })
      }
    }
  })

  describe('refuses a modern request that breaks a rule, and names it', () => {
    const refused: readonly [string, Change, RpcRule, RegExp][] = [
      ['no version in the envelope', { meta: { [META.protocolVersion]: undefined } }, 'envelope_invalid', /is missing/],
      [
        'a version that is no string',
        { meta: { [META.protocolVersion]: 20260728 } },
        'envelope_invalid',
        /must be a string/,
      ],
      ['a version that is null', { meta: { [META.protocolVersion]: null } }, 'envelope_invalid', /must be a string/],
      [
        'an old version, and the same header',
        {
          meta: { [META.protocolVersion]: '2025-11-25' },
          headers: { 'mcp-protocol-version': '2025-11-25' },
        },
        'version_unsupported',
        /Unsupported protocol version: 2025-11-25/,
      ],
      [
        'a later version',
        {
          meta: { [META.protocolVersion]: '2027-01-01' },
          headers: { 'mcp-protocol-version': '2027-01-01' },
        },
        'version_unsupported',
        /2027-01-01/,
      ],
      [
        'an unknown version without a header',
        {
          meta: { [META.protocolVersion]: '2027-01-01' },
          headers: { 'mcp-protocol-version': undefined },
        },
        'version_unsupported',
        /2027-01-01/,
      ],
      [
        'another version in the header',
        { headers: { 'mcp-protocol-version': '2027-01-01' } },
        'header_mismatch',
        /MCP-Protocol-Version/,
      ],
      ['no version header', { headers: { 'mcp-protocol-version': undefined } }, 'header_mismatch', /\(missing\)/],
      [
        'no client capabilities',
        { meta: { [META.clientCapabilities]: undefined } },
        'envelope_invalid',
        /clientCapabilities: is missing/,
      ],
      [
        'client capabilities in a list',
        { meta: { [META.clientCapabilities]: [] } },
        'envelope_invalid',
        /must be an object/,
      ],
      [
        'client capabilities null',
        { meta: { [META.clientCapabilities]: null } },
        'envelope_invalid',
        /must be an object/,
      ],
      [
        'client info without a version',
        { meta: { [META.clientInfo]: { name: 'x' } } },
        'envelope_invalid',
        /clientInfo/,
      ],
      ['client info that is a text', { meta: { [META.clientInfo]: 'x' } }, 'envelope_invalid', /clientInfo/],
      ['no method header', { headers: { 'mcp-method': undefined } }, 'header_mismatch', /Mcp-Method.*\(missing\)/],
      [
        'another method header',
        { headers: { 'mcp-method': 'tools/list' } },
        'header_mismatch',
        /Mcp-Method header is tools\/list/,
      ],
      ['a method header in other case', { headers: { 'mcp-method': 'Tools/Call' } }, 'header_mismatch', /Mcp-Method/],
      [
        'two method headers',
        { headers: { 'mcp-method': ['tools/call', 'tools/call'] } },
        'header_mismatch',
        /Mcp-Method/,
      ],
      ['no name header', { headers: { 'mcp-name': undefined } }, 'header_mismatch', /Mcp-Name.*\(missing\)/],
      [
        'another name header',
        { headers: { 'mcp-name': 'files__write' } },
        'header_mismatch',
        /"files__read".*Mcp-Name/,
      ],
      ['a name header in other case', { headers: { 'mcp-name': 'Files__read' } }, 'header_mismatch', /Mcp-Name/],
      [
        'a name header twice, as Node joins it',
        { headers: { 'mcp-name': 'files__read, files__read' } },
        'header_mismatch',
        /Mcp-Name/,
      ],
      ['an empty name header', { headers: { 'mcp-name': '' } }, 'header_mismatch', /Mcp-Name/],
      [
        'a name header in base64 of another name',
        { headers: { 'mcp-name': base64('files__write') } },
        'header_mismatch',
        /Mcp-Name/,
      ],
      [
        'a name header in base64 that is none',
        { headers: { 'mcp-name': '=?base64?!?=' } },
        'header_mismatch',
        /Mcp-Name/,
      ],
      [
        'a prompt with another name header',
        {
          body: { method: 'prompts/get' },
          headers: { 'mcp-method': 'prompts/get', 'mcp-name': 'other' },
        },
        'header_mismatch',
        /params\.name/,
      ],
      [
        'a resource with another name header',
        {
          body: { method: 'resources/read' },
          params: { uri: 'file:///a' },
          headers: { 'mcp-method': 'resources/read', 'mcp-name': 'file:///b' },
        },
        'header_mismatch',
        /params\.uri/,
      ],
    ]
    for (const [shows, change, rule, message] of refused) {
      it(shows, () => {
        const fault = faultOf(changed(change))
        assert.equal(fault.rule, rule)
        assert.match(fault.message, message)
      })
    }

    it('uses the codes of MCP 2026-07-28 for them', () => {
      assert.deepEqual(RPC_ERRORS.header_mismatch, { code: -32_020, status: 400 })
      assert.deepEqual(RPC_ERRORS.version_unsupported, { code: -32_022, status: 400 })
      assert.deepEqual(RPC_ERRORS.envelope_invalid, { code: -32_602, status: 400 })
    })

    it('names the supported versions, and both values of a mismatch', () => {
      const unsupported = faultOf(
        changed({
          meta: { [META.protocolVersion]: '2027-01-01' },
          headers: { 'mcp-protocol-version': '2027-01-01' },
        }),
      )
      assert.deepEqual(unsupported.data, { supported: [VERSION], requested: '2027-01-01' })
      const { data } = faultOf(changed({ headers: { 'mcp-method': 'tools/list' } }))
      assert.deepEqual(data, { mismatch: { header: 'tools/list', body: 'the body names the method tools/call' } })
    })
  })

  describe('accepts variations that the rules allow', () => {
    const taken: readonly [string, Change][] = [
      ['no client info', { meta: { [META.clientInfo]: undefined } }],
      ['an id that is a text', { body: { id: '' } }],
      ['a negative id', { body: { id: -1 } }],
      ['white space around headers', { headers: { 'mcp-method': ' tools/call\t', 'mcp-name': ' files__read ' } }],
      ['a name header in base64', { headers: { 'mcp-name': base64('files__read') } }],
      [
        'a name that no header can carry',
        { params: { name: 'größe 🙂' }, headers: { 'mcp-name': base64('größe 🙂') } },
      ],
      [
        'a name that looks like base64',
        {
          params: { name: '=?base64?YQ==?=' },
          headers: { 'mcp-name': base64('=?base64?YQ==?=') },
        },
      ],
      [
        'a name that is no string, which the method refuses',
        { params: { name: 5 }, headers: { 'mcp-name': undefined } },
      ],
      [
        'a name header where the method has no name',
        {
          body: { method: 'tools/list' },
          headers: { 'mcp-method': 'tools/list', 'mcp-name': 'anything' },
        },
      ],
      ['a method it does not know', { body: { method: 'x/y' }, headers: { 'mcp-method': 'x/y' } }],
    ]
    for (const [shows, change] of taken) {
      it(shows, () => {
        const message = readMessage(...changed(change))
        assert.ok(message.era === 'modern' && message.kind === 'request')
      })
    }

    it('a notification, which is not answered', () => {
      assert.deepEqual(readMessage(...changed({ body: { id: undefined } })), { era: 'modern', kind: 'notification' })
    })
  })
})

describe('decodeHeader', () => {
  it('returns a plain value unchanged', () => {
    for (const value of ['files__read', '', 'a b', '=?base64?', '=?utf-8?Q?a?=', '=?BASE64?YQ==?='])
      assert.equal(decodeHeader(value), value)
  })

  it('decodes the base64 of UTF-8', () => {
    for (const value of ['', 'a', 'größe', '🙂', ' lead', 'a\nb', '\ufeffa', '=?base64?YQ==?=', '__proto__'])
      assert.equal(decodeHeader(base64(value)), value)
  })

  it('returns undefined for base64 that is not canonical or not UTF-8, so that it agrees with no body', () => {
    for (const encoded of ['YQ', 'YQ=', 'YR==', 'Y', '/w==', '7aCA'])
      assert.equal(decodeHeader(`=?base64?${encoded}?=`), undefined, encoded)
  })
})

function base64(value: string): string {
  return `=?base64?${Buffer.from(value).toString('base64')}?=`
}
