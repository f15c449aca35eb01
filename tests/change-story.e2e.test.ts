import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type AuditBody, loadConfig, startGateway } from '@toolgate/gateway'
import { INSTALLED_FROM } from '../packages/cli/src/files.ts'
import { runProgram } from '../packages/cli/src/program.ts'
import { createStopSignals } from '../packages/cli/src/stop-signals.ts'
import { fakeIo } from '../packages/cli/src/testing/fake-io.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { type PageBlock, pageSections } from './support/page-steps.ts'
import { MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'

/**
 * The story of docs/guide/changing-a-policy.md: its files, its commands, and what they print, around a gateway with a real
 * server and agents that call it. With TOOLGATE_UPDATE=1 the page gets what the commands print.
 */

const PAGE = path.resolve(import.meta.dirname, '../docs/guide/changing-a-policy.md')
const page = readFileSync(PAGE, 'utf8')
const sections = pageSections(page)
const KEYS = { olga: 'key-of-olga-1', nightly: 'key-of-nightly-1', rosa: 'key-of-rosa-1', owner: 'key-of-owner-1' }
const ENV = { OLGA_KEY: KEYS.olga, NIGHTLY_KEY: KEYS.nightly, RESEARCH_KEY: KEYS.rosa, OWNER_KEY: KEYS.owner }

/** The id of a preview, which differs in each run, as it is on the page. */
const SHOWN_PREVIEW = '8d41f6a90c2be753'

const HOUR_MS = 3_600_000
/** The end of the story is now, for commands that ask for the last day; on the page it is this. */
const END_MS = Math.floor(Date.now() / 60_000) * 60_000 - 60_000
const SHOWN_END_MS = Date.parse('2026-11-23T17:00:00Z')

/** A row of the table that `toolgate audit query` prints. */
const ROW = /^(\d+ +)(\d{4}-\d\d-\d\d| {10})( {2})(\d\d:\d\d:\d\d)/gm

// The table has local times.
process.env['TZ'] = 'UTC'

describe('docs/guide/changing-a-policy.md', () => {
  const folder = tempFolder()
  const root = realpathSync(folder.path)
  const startedIn = process.cwd()
  const at = (name: string) => path.join(root, name)
  let gateway: TestGateway
  let wallMs = END_MS - 96 * HOUR_MS
  let updated = page
  let preview = ''

  before(async () => {
    for (const name of ['drafts', 'archive', 'papers', 'data']) {
      mkdirSync(at(`workspace/${name}`), { recursive: true })
      writeFileSync(at(`workspace/${name}/one.md`), `${name}\n`)
    }
    write('Where it begins')
    process.chdir(root)
    const read = () => loadConfig('toolgate.yaml', { env: ENV, packagesFrom: [INSTALLED_FROM] })
    gateway = await startTestGateway(read(), read, {
      wallMs: () => wallMs,
      monotonicMs: () => performance.now() + wallMs,
    })
    for (let day = 0; day < 3; day++) await workADay(day)
  })
  after(async () => {
    await gateway?.close()
    process.chdir(startedIn)
    folder.remove()
    if (process.env['TOOLGATE_UPDATE']) writeFileSync(PAGE, updated)
  })

  /** What the agents do in a day, which the clock then is at the end of. */
  async function workADay(day: number): Promise<void> {
    wallMs += 2 * HOUR_MS
    await call('nightly', 'read_text_file', 'data/one.md')
    await call('nightly', 'write_file', `archive/night-${day}.md`)
    wallMs += 7 * HOUR_MS
    await call('olga', 'write_file', `drafts/plan-${day}.md`)
    for (let i = 0; i < 8; i++) {
      await call('rosa', 'read_text_file', 'papers/one.md')
      wallMs += HOUR_MS / 8
    }
    await call('rosa', 'list_directory', 'papers')
    // There is no such file.
    await call('rosa', 'read_text_file', 'archive/lost.md')
    if (day === 0) await call('rosa', 'read_text_file', '../toolgate.yaml')
    wallMs += 14 * HOUR_MS
  }

  async function call(who: keyof typeof KEYS, tool: string, file: string): Promise<string> {
    const input = { path: at(`workspace/${file}`), ...(tool === 'write_file' && { content: 'hello' }) }
    const { headers, body } = toMessage(MODERN, 'tools/call', { name: `files__${tool}`, arguments: input })
    const answer = await send(gateway.mcpUrl, {
      headers: { ...headers, authorization: `Bearer ${KEYS[who]}` },
      body: JSON.stringify(body),
    })
    return textOf(answer.json() as RpcAnswer)
  }

  function blocksOf(section: string): readonly PageBlock[] {
    const blocks = sections.get(section)
    assert.ok(blocks, `no section "${section}"`)
    return blocks
  }

  function write(section: string): void {
    for (const block of blocksOf(section)) if (block.does !== 'run') writeBlock(block)
  }

  function writeBlock({ does, name, text }: Exclude<PageBlock, { does: 'run' }>): void {
    if (does === 'file') return writeFileSync(at(name), text)
    if (does === 'append') return writeFileSync(at(name), `${readFileSync(at(name), 'utf8')}\n${text}`)
    const [first] = blocksOf('Where it begins')
    assert.ok(first?.does === 'file' && first.text.includes('\nlabels:'))
    writeFileSync(
      at(name),
      first.text.replace('\nlabels:', () => `${text}\nlabels:`),
    )
  }

  /** Runs a section as it is written: its files, and its commands. */
  async function follow(section: string): Promise<void> {
    for (const block of blocksOf(section)) {
      if (block.does === 'run') await runBlock(block)
      else writeBlock(block)
    }
  }

  async function runBlock({ text, commands }: Extract<PageBlock, { does: 'run' }>): Promise<void> {
    let found = ''
    for (const { command } of commands) found += `$ ${command}\n${shown(await toolgate(command))}`
    updated = updated.replace(`\`\`\`console\n${text}\`\`\``, () => `\`\`\`console\n${found}\`\`\``)
    if (!process.env['TOOLGATE_UPDATE']) assert.equal(found, text)
  }

  async function toolgate(command: string): Promise<string> {
    const [program, ...args] = command.replace(SHOWN_PREVIEW, preview).split(' ')
    if (program === 'cp') {
      copyFileSync(at(args[0] ?? ''), at(args[1] ?? ''))
      return ''
    }
    assert.equal(program, 'toolgate')
    const io = fakeIo({ ...ENV, TOOLGATE_URL: gateway.url, TOOLGATE_KEY: KEYS.owner })
    const signals = createStopSignals({ source: new EventEmitter(), exit: () => {}, nowMs: () => 0 })
    await runProgram(args, { io, version: '1', signals, start: startGateway })
    const printed = io.out() + io.err()
    preview = /--preview ([0-9a-f]{16})\n/.exec(printed)?.[1] ?? preview
    return printed
  }

  /** Returns what a command has printed, with the page's folder and times, and without what differs in each run. */
  function shown(printed: string): string {
    const text = preview === '' ? printed : printed.replaceAll(preview, SHOWN_PREVIEW)
    return (
      withShownDays(text)
        .replaceAll(root, '/srv/toolgate')
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d\.\d{3}Z)?/g, (time) => {
          const ms = Date.parse(time.length === 16 ? `${time}Z` : time)
          return new Date(ms - END_MS + SHOWN_END_MS).toISOString().slice(0, time.length)
        })
        .replaceAll(/\b\d+ ms\b/g, '3 ms')
        // Signed once a second, whatever the clock of the story says.
        .replace(
          /\d+ checkpoints up to record (\d+), the last of \S+Z/,
          '19 checkpoints up to record $1, the last of 2026-11-23T17:00:01.000Z',
        )
    )
  }

  /** Moves the days and times of a table to those of the page. A day stands in its first row only. */
  function withShownDays(text: string): string {
    let [day, earlier] = ['', '']
    return text.replaceAll(ROW, (_row, seq: string, date: string, gap: string, time: string) => {
      if (date.trim() !== '') day = date
      const moved = new Date(Date.parse(`${day}T${time}Z`) - END_MS + SHOWN_END_MS).toISOString()
      const shownDay = moved.slice(0, 10)
      const cell = shownDay === earlier ? ' '.repeat(shownDay.length) : shownDay
      earlier = shownDay
      return `${seq}${cell}${gap}${moved.slice(11, 19)}`
    })
  }

  it('tests the rule before it is there, and after', () => follow('1. Say what shall hold'))

  it('finds the job that it would break', () => follow('2. Ask what it would have meant'))

  it('watches it as a shadow for a day of calls', async () => {
    const blocks = blocksOf('3. Let it run as a shadow')
    const [rule, reload, query] = blocks
    assert.ok(rule?.does === 'rule' && reload?.does === 'run' && query?.does === 'run' && blocks.length === 3)
    writeBlock(rule)
    await runBlock(reload)
    await workADay(3)
    await runBlock(query)
  })

  it('is mended', () => follow('4. Mend it'))

  it('is applied without a restart, and holds from the next call on', async () => {
    await follow('5. Apply it')
    assert.match(await call('olga', 'write_file', 'plan.md'), /Write only in the drafts folder/)
    assert.match(await call('nightly', 'write_file', 'archive/night-4.md'), /Successfully wrote/)
  })

  it('is shown to an auditor', async () => {
    const { body } = await gateway.api('/api/audit?limit=1', { key: KEYS.owner })
    const [newest] = (body as AuditBody).records
    // The gateway signs once a second.
    await until(async () => (await toolgate('toolgate audit verify')).includes(`up to record ${newest?.seq},`))
    await follow('6. Show an auditor')
  })

  it('gives a new team a policy from its calls', () => follow('A policy for a new team'))
})
