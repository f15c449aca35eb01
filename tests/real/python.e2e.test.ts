import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after } from 'node:test'
import { withBinaries } from '../support/binaries.ts'
import { tempFolder } from '../support/gateway.ts'
import { describeClients, programClient } from './support/clients.ts'
import { BOTH, call, CHECKED, describeServer, prompt, read, type RealServer, UNKNOWN } from './support/compare.ts'
import { installed, type Run } from './support/install.ts'

/** Servers and clients of Python: one environment has version 1 of `mcp`, and the other version 2. */

const own = (file: string) => path.join(import.meta.dirname, 'python', file)

/** Makes an environment. Debian's Python has no pip to put into it, so the pip beside it installs. */
async function makeEnvironment(python: string, requirements: string, folder: string, sources: string, run: Run) {
  await run(python, ['-m', 'venv', '--without-pip', folder])
  const environment = path.join(folder, 'bin/python')
  const install = ['install', '--quiet', '--no-deps', '--no-compile', '--disable-pip-version-check']
  await run(python, ['-m', 'pip', '--python', environment, ...install, '-r', path.join(sources, requirements)])
}

const folder = tempFolder()
after(() => folder.remove())
const repository = path.join(folder.path, 'repository')

function makeRepository(): void {
  mkdirSync(repository)
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], { cwd: repository })
  git('init', '--quiet', '--initial-branch=main')
  writeFileSync(path.join(repository, 'a.txt'), 'größe\n')
  git('add', '.')
  git('commit', '--quiet', '--message=One')
}

function serversOf(first: string, second: string): readonly RealServer[] {
  const module = (name: string, ...args: readonly string[]) => ({ command: second, args: ['-m', name, ...args] })
  return [
    {
      name: 'mcp-server-fetch',
      ...module('mcp_server_fetch', '--ignore-robots-txt'),
      eras: BOTH,
      lists: [1, 0, 0, 1],
      asks: [
        call('fetch', { url: 'http://127.0.0.1:1/' }),
        call('fetch', { url: 'nonsense' }),
        call('fetch', {}, ["must have required property 'url'", CHECKED]),
        call('none', {}, ['is not available', UNKNOWN]),
        prompt('fetch', { url: 'http://127.0.0.1:1/' }),
        prompt('none', {}, ['Prompt not found', UNKNOWN]),
      ],
    },
    {
      name: 'mcp-server-git',
      ...module('mcp_server_git', '--repository', repository),
      eras: BOTH,
      lists: [12, 0, 0, 0],
      asks: [
        call('git_status', { repo_path: repository }),
        call('git_log', { repo_path: repository, max_count: 1 }),
        call('git_show', { repo_path: repository, revision: 'HEAD' }),
        call('git_show', { repo_path: repository, revision: 'none' }),
        call('git_status', { repo_path: '/nonexistent' }),
        call('git_log', { repo_path: repository, max_count: '1' }, ['must be integer', CHECKED]),
        read('git://none', ['Resource not found', UNKNOWN]),
      ],
    },
    {
      name: 'mcp-server-time',
      ...module('mcp_server_time', '--local-timezone', 'Europe/Berlin'),
      eras: BOTH,
      lists: [2, 0, 0, 0],
      asks: [
        call('get_current_time', { timezone: 'Nowhere' }),
        call('convert_time', { source_timezone: 'Asia/Tokyo', time: '25:00', target_timezone: 'UTC' }),
      ],
    },
    {
      name: 'mcp-server-sqlite',
      command: first,
      args: ['-c', 'import mcp_server_sqlite as it; it.main()', '--db-path', path.join(folder.path, 'a.db')],
      eras: ['2025-11-25'],
      lists: [6, 1, 0, 1],
      asks: [
        call('list_tables', {}),
        call('read_query', { query: "select 1 as a, null as b, 'ü' as c" }),
        call('read_query', { query: 'selec' }),
        read('memo://insights'),
        read('memo://none'),
        prompt('mcp-demo', { topic: 'cats' }),
      ],
    },
    {
      name: 'fastmcp',
      command: second,
      args: [own('server.py')],
      httpArgs: (port) => [own('server.py'), String(port)],
      eras: BOTH,
      lists: [7, 2, 2, 1],
      asks: [
        call('total', { values: [1, 2] }),
        call('total', { values: ['1', '2'] }, ['must be integer', CHECKED]),
        call('rows', { count: 2 }),
        call('rows', { count: 2, of: null }),
        call('rows', { count: 0 }),
        call('rows', { count: 9 }, ['must be <= 5', CHECKED]),
        call('fail', {}),
        call('bug', {}),
        call('steps', {}),
        read('note://one'),
        read('note://Two%20x'),
        read('files://a/b/c?size=4'),
        read('files://a/b/c'),
        read('data://bytes'),
        read('nowhere://x', ['Resource not found', UNKNOWN]),
        prompt('review', { language: 'Go', focus: '["a"]' }),
      ],
    },
  ]
}

/** FastMCP converts texts, which models send. The gateway can do so before it decides, or leave the input to the server. */
function fastMcpWith(python: string, inputs: string): RealServer {
  return {
    name: `fastmcp with inputs: ${inputs}`,
    command: python,
    args: [own('server.py')],
    eras: ['2025-11-25'],
    lists: [7, 2, 2, 1],
    given: { inputs },
    asks: [call('total', { values: ['1', '2'] }), call('rows', { count: '2' })],
  }
}

const environments = async (python: string) => {
  const make = (requirements: string) =>
    installed('python', [requirements], (to, sources, run) => makeEnvironment(python, requirements, to, sources, run))
  const made = await Promise.all([make('requirements-1.txt'), make('requirements-2.txt')])
  return made.map((place) => place && path.join(place, 'bin/python'))
}

let found: Promise<readonly (string | undefined)[]> | undefined
withBinaries(['python3', 'pip3', 'git'], ({ python3 }) => {
  found = environments(python3)
})
const [first, second] = (await found) ?? []
if (first !== undefined && second !== undefined) {
  makeRepository()
  const servers = serversOf(first, second)
  for (const server of servers) describeServer(server, () => folder.path)
  for (const inputs of ['coerced', 'server']) describeServer(fastMcpWith(second, inputs), () => folder.path)
  const client = own('client.py')
  describeClients({
    'mcp 1 of Python': programClient(first, [client], 'legacy'),
    'mcp 2 of Python, with initialize': programClient(second, [client], 'legacy'),
    'mcp 2 of Python, of 2026-07-28': programClient(second, [client], 'modern'),
  })
}
