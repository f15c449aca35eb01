import path from 'node:path'
import { withBinaries } from '../support/binaries.ts'
import { describeClients, programClient } from './support/clients.ts'
import { BOTH, call, CHECKED, describeServer, prompt, read, type RealServer, UNKNOWN } from './support/compare.ts'
import { installed } from './support/install.ts'

/** Servers and a client of Go: `mcp-go`, the official SDK, and programs that both ship. */

const EVERYTHING = 'github.com/mark3labs/mcp-go/examples/everything'
const SDK_EVERYTHING = 'github.com/modelcontextprotocol/go-sdk/examples/server/everything'
const PROMPT = "a prompt's required arguments are part of its definition, and this server does not insist on them"
const HIDDEN = 'the total would count values that the caller may not see'

function serversOf(folder: string): readonly RealServer[] {
  const program = (name: string) => ({ command: path.join(folder, name), args: [] })
  return [
    {
      name: 'mcp-go',
      ...program('server'),
      httpArgs: (port) => [`127.0.0.1:${port}`],
      eras: BOTH,
      lists: [4, 1, 1, 1],
      asks: [
        call('add', { a: 1, b: 2 }),
        call('shout', { text: 'ü' }),
        call('shout', { text: 'x'.repeat(21) }, ['must NOT have more than 20 characters', CHECKED]),
        call('fail', {}),
        call('refuse', {}),
        read('note://one'),
        read('note://Two'),
        read('note://none'),
        prompt('review', { language: 'Go' }),
        prompt('review', {}, ['must have required property', PROMPT]),
      ],
    },
    {
      name: 'mcp-go everything',
      ...program('mcp-go-everything'),
      eras: BOTH,
      lists: [6, 101, 1, 2],
      asks: [
        call('echo', { message: 'hi' }),
        call('notify', {}),
        call('getTinyImage', {}),
        call('get_resource_link', {}),
        read('test://static/resource/2'),
        read('test://dynamic/resource/7'),
        read('test://none', ['Resource not found', UNKNOWN]),
        prompt('simple_prompt', {}),
        prompt('complex_prompt', { temperature: '1', style: 'x' }),
        {
          method: 'completion/complete',
          params: {
            ref: { type: 'ref/resource', uri: 'test://dynamic/resource/{id}' },
            argument: { name: 'id', value: '' },
          },
          ours: ['"hasMore":true', HIDDEN],
        },
      ],
    },
    {
      name: 'go-sdk everything',
      ...program('go-sdk-everything'),
      httpArgs: (port) => ['-http', `127.0.0.1:${port}`],
      eras: BOTH,
      httpEras: ['2025-11-25'],
      lists: [10, 1, 1, 2],
      asks: [
        call('greet', { name: 'x' }),
        call('greet (structured)', { name: 'x' }),
        call('log', {}),
        { ...call('ping', {}), onStdio: true },
        read('embedded:info'),
        prompt('greet', { name: 'y' }),
        prompt('greet (with Icons)', { name: 'y' }),
      ],
    },
  ]
}

let found: Promise<string | undefined> | undefined
withBinaries(['go'], ({ go }) => {
  found = installed('go', ['go.mod', 'go.sum', '**/*.go'], async (folder, _, run) => {
    const env = { GOFLAGS: '-mod=mod', GOWORK: 'off', GOBIN: folder, CGO_ENABLED: '0' }
    await run(go, ['build', '-o', `${folder}${path.sep}`, './server', './client'], env)
    await run(go, ['build', '-o', path.join(folder, 'mcp-go-everything'), EVERYTHING], env)
    await run(go, ['build', '-o', path.join(folder, 'go-sdk-everything'), SDK_EVERYTHING], env)
  })
})
const folder = await found
if (folder !== undefined) {
  for (const server of serversOf(folder)) describeServer(server, () => folder)
  const client = path.join(folder, 'client')
  describeClients({
    'the SDK of Go, with initialize': programClient(client, [], 'legacy'),
    'the SDK of Go, of 2026-07-28': programClient(client, [], 'modern'),
  })
}
