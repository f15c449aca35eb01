// A client of version 1.12 of the SDK: connects to the URL with the key, and does what each line says.
import { createInterface } from 'node:readline'
import { Client } from 'sdk-1.12/client/index.js'
import { StreamableHTTPClientTransport } from 'sdk-1.12/client/streamableHttp.js'

const [url, key] = process.argv.slice(2)
const client = new Client({ name: 'real', version: '1' })
const headers = { authorization: `Bearer ${key}` }
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))

async function act({ name, arguments: input }) {
  if (name !== undefined) return client.callTool({ name, arguments: input })
  const { tools } = await client.listTools()
  return tools.map((tool) => tool.name)
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await act(JSON.parse(line)).then(
    (value) => ({ answer: value }),
    (error) => ({ error: String(error) }),
  )
  console.log(JSON.stringify(answer))
}
process.exit()
