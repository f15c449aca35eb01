import { createInterface } from 'node:readline'

/**
 * A server on stdio (2025-11-25) whose answers are as large as a gateway takes.
 *
 * `result` with a `kind` of RESULTS answers with that result; `relist` with one of LISTS changes the list of tools to
 * that one and announces it.
 */
const LARGE_BYTES = 12 * 1024 * 1024
const BLOCKS = 100_000
const WIDE_PROPERTIES = 20_000
const MANY_TOOLS = 3_000

const text = (value) => ({ type: 'text', text: value })
const repeat = (count, make) => Array.from({ length: count }, (_, i) => make(i))
const schema = (properties = {}) => ({ type: 'object', properties })
const tool = (name, inputSchema = schema(), description = `Does ${name}.`) => ({ name, description, inputSchema })
const own = ['result', 'relist', 'members', 'duration', 'within', 'send', 'ask', 'spend'].map((name) => tool(name))

const RESULTS = {
  'one long text': () => ({ content: [text('a'.repeat(LARGE_BYTES))] }),
  'one long text of escapes': () => ({ content: [text('"'.repeat(LARGE_BYTES / 2))] }),
  'many blocks': () => ({ content: repeat(BLOCKS, (i) => text(`block ${i} ${'b'.repeat(80)}`)) }),
  'many numbers': () => ({ content: [text('numbers')], structuredContent: { rows: repeat(1_000_000, (i) => i % 10) } }),
  'as many values as an answer may have': () => ({
    content: [text('values')],
    structuredContent: { rows: repeat(190_000, (i) => i) },
  }),
  'as many keys as an answer may have': () => ({ content: [text('keys')], structuredContent: { map: keys('k') } }),
  'as many keys, with a backslash': () => ({ content: [text('keys')], structuredContent: { map: keys('\\k"') } }),
}
function keys(prefix) {
  return Object.fromEntries(repeat(49_000, (i) => [`${prefix}${i}`, i]))
}
let round = 0
const LISTS = {
  plain: () => own,
  'one wide schema': () => [
    ...own,
    tool('wide', schema(Object.fromEntries(repeat(WIDE_PROPERTIES, (i) => [`field_${i}`, { type: 'string' }])))),
  ],
  'one long description': () => [...own, tool('long', schema(), 'word '.repeat(LARGE_BYTES / 5))],
  'many tools that change': () => {
    round++
    const fields = schema(Object.fromEntries(repeat(5, (i) => [`field_${i}_${round}`, { type: 'string' }])))
    return [...own, ...repeat(MANY_TOOLS, (i) => tool(`tool_${i}`, fields, `Does the ${i}th thing, version ${round}.`))]
  },
}
let list = LISTS.plain()

function answer({ method, params }) {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'hostile', version: '1.0.0' },
      }
    case 'tools/list':
      return { tools: list }
    case 'tools/call':
      if (params.name === 'result') return RESULTS[params.arguments.kind]?.() ?? { content: [text('small')] }
      if (params.name !== 'relist') return { content: [text('done')] }
      list = LISTS[params.arguments.kind]()
      setImmediate(() => send({ method: 'notifications/tools/list_changed' }))
      return { content: [text('changed')] }
    default:
      return {}
  }
}

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line)
  if (message.id !== undefined && message.method !== undefined) send({ id: message.id, result: answer(message) })
})
