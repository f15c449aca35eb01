// An MCP server on stdio that gives away what it knows: in results, errors, descriptions, on stderr and on stdout.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** @type {{ outputs: string[], errors: string[], stderr: string[], stray: string[] }} */
const leaks = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'))
const env = process.env['LEAKY_TOKEN'] ?? ''
const send = (/** @type {object} */ message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const tool = (/** @type {string} */ name) => ({
  name,
  description: `Runs ${name} with the token ${env}.`,
  inputSchema: { type: 'object' },
})

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  switch (method) {
    case 'initialize': {
      const serverInfo = { name: `leaky ${env}`, version: '1' }
      send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo } })
      break
    }
    case 'tools/list':
      send({ id, result: { tools: ['say', 'err', 'throw', 'pay', 'hidden', 'die'].map(tool) } })
      break
    case 'tools/call':
      call(id, params.name, params.arguments.n ?? 0)
      break
    default:
      send({ id, result: {} })
  }
}

/** @param {number} id @param {string} name @param {number} n */
function call(id, name, n) {
  process.stderr.write(`debug ${leaks.stderr[n]}\n`)
  process.stdout.write(`${leaks.stray[n % leaks.stray.length]}\n`)
  if (name === 'die') {
    process.stderr.write(`Error: cannot go on with ${env} and ${leaks.errors[0]}\n`)
    process.exit(1)
  }
  if (name === 'throw')
    return send({ id, error: { code: -32000, message: `failed: ${leaks.errors[n]}`, data: leaks.errors[n] } })
  const text = name === 'err' ? leaks.errors[n] : leaks.outputs[n]
  return send({ id, result: { content: [{ type: 'text', text: `${text} ${env}` }], isError: name === 'err' } })
}
