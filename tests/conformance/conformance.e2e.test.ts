import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startTestGateway, tempFolder, type TestGateway } from '../support/gateway.ts'
import { KEYS } from '../support/keys.ts'
import { httpServer } from '../support/servers.ts'
import { type Front, startFront } from './support/front.ts'
import { judge, RUNS, type RefereeRun, type Verdicts } from './support/referee.ts'
import { type FixtureServer, startEarlierFixture, startModernFixture } from './support/servers.ts'

/**
 * The referee of MCP judges the same server twice, directly and through a gateway that allows everything. Each check
 * must end alike. `differences.json` lists the checks that do not, each with its reason; a check in it that ends alike
 * fails too. `TOOLGATE_UPDATE=1` writes
 * it, except for the reasons.
 */

const DIFFERENCES_FILE = path.join(import.meta.dirname, 'differences.json')

const PAGE = path.join(import.meta.dirname, '../../docs/guide/referees.md')

/** Checks that end differently for one reason, by run. */
interface Difference {
  readonly reason: string
  readonly first?: readonly string[]
  readonly earlier?: readonly string[]
  readonly modern?: readonly string[]
}
type RunKey = keyof typeof RUNS
const RUN_KEYS = ['first', 'earlier', 'modern'] as const satisfies readonly RunKey[]

const differences = JSON.parse(readFileSync(DIFFERENCES_FILE, 'utf8')) as readonly Difference[]
const SERVER = 'fixture'
const PREFIX = `${SERVER}__`
const EVERYTHING = ['*', 'resource:*:*', 'prompt:*:*']

interface Through {
  readonly url: string
  close(): Promise<void>
}

async function throughGateway(fixture: FixtureServer, deny: readonly string[] = []): Promise<Through> {
  const gateway: TestGateway = await startTestGateway({
    servers: [
      httpServer(SERVER, fixture.url, {
        per: 'shared',
        offers: ['tools', 'resources', 'prompts'],
        may: { elicit: true, sample: true, roots: true, log: true, open: [] },
      }),
    ],
    policy: [{ allow: EVERYTHING, deny }],
  })
  const front: Front = await startFront(gateway.mcpUrl, KEYS.admin, PREFIX)
  return {
    url: front.url,
    async close() {
      await front.close()
      await gateway.close()
    },
  }
}

async function judgeBoth(run: RefereeRun, directly: Through, through: Through): Promise<readonly Row[]> {
  const folders = [tempFolder(), tempFolder()]
  try {
    const [direct, ours] = await Promise.all([
      judge(run, directly.url, folders[0]?.path ?? ''),
      judge(run, through.url, folders[1]?.path ?? ''),
    ])
    return toRows(direct, ours)
  } finally {
    for (const folder of folders) folder.remove()
  }
}

interface Row {
  readonly check: string
  readonly direct: string
  readonly through: string
}

function toRows(direct: Verdicts, through: Verdicts): readonly Row[] {
  return [...new Set([...direct.keys(), ...through.keys()])].toSorted().map((check) => ({
    check,
    direct: direct.get(check) ?? 'absent',
    through: through.get(check) ?? 'absent',
  }))
}

/** How many checks passed, and how many failed. */
function countsOf(rows: readonly Row[], side: 'direct' | 'through'): readonly number[] {
  return ['SUCCESS', 'FAILURE'].map((verdict) => rows.filter((row) => row[side] === verdict).length)
}

const isDifferent = ({ direct, through }: Row): boolean => direct !== through

/** One line for each scenario: how many checks passed directly and through, and which ended differently. */
function tableOf(rows: readonly Row[]): string {
  const scenarios = Map.groupBy(rows, ({ check }) => check.split(' / ')[0] ?? check)
  const passed = (list: readonly Row[], side: 'direct' | 'through') =>
    `${list.filter((row) => row[side] === 'SUCCESS').length}/${list.length}`
  return [...scenarios]
    .map(([scenario, list]) => {
      const different = list.filter(isDifferent).map(({ check }) => check.slice(scenario.length + 3))
      const line = `${scenario.padEnd(46)}${passed(list, 'direct').padStart(8)}${passed(list, 'through').padStart(8)}`
      return different.length > 0 ? `${line}  ${different.join(', ')}` : line
    })
    .join('\n')
}

for (const key of RUN_KEYS) {
  const run = RUNS[key]
  describe(`the referee ${run.name}`, () => {
    let fixture: FixtureServer
    let through: Through
    before(async () => {
      fixture = await (key === 'modern' ? startModernFixture() : startEarlierFixture())
      through = await throughGateway(fixture)
    })
    after(async () => {
      await through?.close()
      await fixture?.close()
    })

    it('finds no difference between the server and the server behind the gateway, except for those listed', async (t) => {
      const rows = await judgeBoth(run, fixture, through)
      assert.ok(rows.length >= 40, `the referee made only ${rows.length} checks`)
      t.diagnostic(`scenario, direct, through\n${tableOf(rows)}`)
      const different = rows.filter(isDifferent)
      const listed = differences.flatMap((difference) => difference[key] ?? [])
      if (process.env['TOOLGATE_UPDATE'] === '1') update(key, different)
      const unlisted = different.filter(({ check }) => !listed.includes(check))
      assert.deepEqual(unlisted, [], 'checks that end differently without a listed reason')
      const stale = listed.filter((check) => !different.some((row) => row.check === check))
      assert.deepEqual(stale, [], 'listed differences that are gone: take them off the list')
      const figures = [countsOf(rows, 'direct'), countsOf(rows, 'through')].flat()
      const line = `| ${[run.name, ...figures].join(' | ')} |`
      assert.ok(readFileSync(PAGE, 'utf8').includes(line), `docs/guide/referees.md has no row "${line}"`)
    })
  })
}

describe('the referee', () => {
  it('sees a gateway that denies one tool: exactly the scenario of that tool fails', async () => {
    const fixture = await startEarlierFixture()
    const open = await throughGateway(fixture)
    const denying = await throughGateway(fixture, [`${SERVER}:test_image_content`])
    try {
      const different = (await judgeBoth(RUNS.earlier, open, denying)).filter(isDifferent)
      assert.deepEqual(different, [
        { check: 'tools-call-image / tools-call-image', direct: 'SUCCESS', through: 'FAILURE' },
      ])
    } finally {
      await Promise.all([open.close(), denying.close()])
      await fixture.close()
    }
  })
})

/** Writes the differences as they are: those that are gone leave the list, new ones wait at its end for a reason. */
function update(key: RunKey, different: readonly Row[]): void {
  const all = JSON.parse(readFileSync(DIFFERENCES_FILE, 'utf8')) as readonly Difference[]
  const checks = different.map(({ check }) => check)
  const kept = all.map((one) => ({ ...one, [key]: one[key]?.filter((check) => checks.includes(check)) }))
  const known = new Set(kept.flatMap((one) => one[key] ?? []))
  const added = checks.filter((check) => !known.has(check))
  const list = [...kept, ...(added.length > 0 ? [{ reason: '', [key]: added }] : [])]
  const used = list.filter((one) => RUN_KEYS.some((run) => (one as Difference)[run]?.length))
  writeFileSync(DIFFERENCES_FILE, `${JSON.stringify(used, null, 2)}\n`)
}

describe('the list of differences', () => {
  it('has a reason for each', () => {
    assert.deepEqual(
      differences.filter(({ reason }) => reason.trim().length < 10),
      [],
    )
  })

  it('names no run that there is not', () => {
    const keys = new Set(differences.flatMap((one) => Object.keys(one)))
    assert.deepEqual([...keys.difference(new Set(['reason', ...RUN_KEYS]))], [])
  })
})
