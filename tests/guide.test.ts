import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { FAULTS, REASONS } from '@toolgate/core'
import { API_FAULTS } from '../packages/gateway/src/model/faults.ts'
import { RPC_ERRORS } from '../packages/gateway/src/model/protocol.ts'

const ROOT = path.resolve(import.meta.dirname, '..')
const TSC = path.join(ROOT, 'node_modules/.bin/tsc')
const pages = ['README.md', ...globSync('docs/guide/*.md', { cwd: ROOT }).toSorted()]
const texts = new Map(pages.map((page) => [page, readFileSync(path.join(ROOT, page), 'utf8')]))

describe('the guide', () => {
  it('has examples that compile', async () => {
    const blocks = pages.flatMap((page) => findBlocks(page, texts.get(page) as string))
    assert.ok(blocks.length > 20, `${blocks.length} blocks`)
    assert.equal(await compile(blocks), '')
  })

  it('leads to files that there are', () => {
    const links = pages.flatMap((page) => findLinks(page, texts.get(page) as string))
    assert.ok(links.length > 30, `${links.length} links`)
    assert.deepEqual(
      links.filter(({ target }) => !existsSync(target)).map(({ page, written }) => `${page}: ${written}`),
      [],
    )
  })

  it('leads to headings that there are', () => {
    const links = pages.flatMap((page) => findAnchors(page, texts.get(page) as string))
    assert.ok(links.length > 100, `${links.length} links`)
    const headings = new Map([...texts].map(([page, text]) => [page, findHeadings(text)]))
    assert.deepEqual(
      links
        .filter(({ to, anchor }) => headings.get(to)?.has(anchor) === false)
        .map(({ page, to, anchor }) => `${page}: ${to}#${anchor}`),
      [],
    )
  })

  it('has pages of at most 1,200 words before their reference', () => {
    const long = pages
      .filter((page) => page !== INDEX)
      .map((page) => ({ page, words: countWords(texts.get(page) as string) }))
    assert.deepEqual(
      long.filter(({ words }) => words > MAX_WORDS).map(({ page, words }) => `${page}: ${words}`),
      [],
    )
  })

  it('lists all of its pages', () => {
    const listed = new Set(
      findLinks('docs/guide/README.md', texts.get('docs/guide/README.md') as string).map(({ target }) => target),
    )
    const missing = pages
      .slice(1)
      .filter((page) => path.basename(page) !== 'README.md' && !listed.has(path.join(ROOT, page)))
    assert.deepEqual(missing, [])
  })
})

describe('docs/guide/errors.md', () => {
  const tables = readTables(texts.get('docs/guide/errors.md') as string)

  it('has every fault with its status and exit code', () => {
    const expected = Object.entries(FAULTS).map(([code, { status, exit }]) => [code, String(status), String(exit)])
    assert.deepEqual(columns(tables, 'fault', 3), expected)
  })

  it('has every fault of the HTTP API with its status', () => {
    const expected = Object.entries(API_FAULTS).map(([code, status]) => [code, String(status)])
    assert.deepEqual(columns(tables, 'fault of the API', 2), expected)
  })

  it('has every rule of the MCP endpoint with its code and status', () => {
    const expected = Object.entries(RPC_ERRORS).map(([rule, { code, status }]) => [rule, String(code), String(status)])
    assert.deepEqual(columns(tables, 'rule', 3), expected)
  })

  it('has every reason with its outcome and how it is told', () => {
    const expected = Object.entries(REASONS).map(([code, { outcome, message }]) => [code, outcome, message])
    assert.deepEqual(columns(tables, 'reason', 3), expected)
  })
})

interface Block {
  /** As `docs/guide/steps.md:12`. */
  readonly at: string
  readonly text: string
}

/** What an example leaves out stands before it, where a reader of the page does not see it: `<!-- given: declare … -->`. */
const BLOCK = /(?:<!-- given: ([\s\S]*?) -->\n+)?```ts\n([\s\S]*?)\n```/g

function findBlocks(page: string, text: string): readonly Block[] {
  return [...text.matchAll(BLOCK)].map((match) => {
    const line = text.slice(0, match.index).split('\n').length
    return { at: `${page}:${line}`, text: `${match[1] ?? ''}\n${match[2]}\nexport {}\n` }
  })
}

/** Compiles each block as a module of its own, all at once. Gives what the compiler says. */
async function compile(blocks: readonly Block[]): Promise<string> {
  const folder = path.join(ROOT, 'node_modules/.cache/guide')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const files = blocks.map(({ at, text }) => {
    const name = `${at.replaceAll(/[^\w]+/g, '-')}.ts`
    writeFileSync(path.join(folder, name), text)
    return name
  })
  const config = {
    extends: path.join(ROOT, 'tsconfig.check.json'),
    // An example names what it shows, whether or not it goes on to use it.
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    files,
    include: [],
    exclude: [],
  }
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config))
  try {
    const { stdout } = await promisify(execFile)(TSC, ['-p', folder, '--pretty', 'false'], { cwd: folder })
    return stdout
  } catch (error) {
    return (error as { stdout?: string }).stdout || String(error)
  }
}

interface Link {
  readonly page: string
  readonly written: string
  readonly target: string
}

function findLinks(page: string, text: string): readonly Link[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, written = '']) => written)
    .filter((written) => !/^[a-z]+:/.test(written) && !written.startsWith('#'))
    .map((written) => ({ page, written, target: path.resolve(ROOT, path.dirname(page), written.replace(/#.*/, '')) }))
}

/** Gives the links to headings: of other pages of the guide, and of the page itself. */
function findAnchors(page: string, text: string): readonly { page: string; to: string; anchor: string }[] {
  return [...text.matchAll(/\]\(([\w./-]*)#([\w-]+)\)/g)].map(([, file = '', anchor = '']) => ({
    page,
    to: file === '' ? page : path.relative(ROOT, path.resolve(ROOT, path.dirname(page), file)),
    anchor,
  }))
}

/** Gives the anchors of a page's headings, as GitHub makes them. */
function findHeadings(text: string): ReadonlySet<string> {
  const found = new Map<string, number>()
  for (const [, title = ''] of withoutCode(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const shown = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    const anchor = shown
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    const before = found.get(anchor)
    found.set(anchor, (before ?? -1) + 1)
    if (before !== undefined) found.set(`${anchor}-${before + 1}`, 0)
  }
  return new Set(found.keys())
}

const MAX_WORDS = 1200
/** It is a list of the others. */
const INDEX = 'docs/guide/README.md'

/** Counts the words of a page that a person reads: without code, and up to the heading "Reference". */
function countWords(text: string): number {
  const [body = ''] = withoutCode(text).split(/^## Reference\b/m)
  return body.split(/\s+/).filter(Boolean).length
}

function withoutCode(text: string): string {
  return text.replaceAll(/<!--[\s\S]*?-->|```[\s\S]*?```/g, '')
}

type Table = readonly (readonly string[])[]

/** Gives the tables of a page, head first, without the marks around codes. */
function readTables(text: string): readonly Table[] {
  return [...text.matchAll(/(?:^\|.*\|\n)+/gm)].map(([table]) =>
    table
      .trim()
      .split('\n')
      .filter((_, row) => row !== 1)
      .map((row) =>
        row
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim().replaceAll('`', '')),
      ),
  )
}

/** Gives the first columns of the table whose head begins so. */
function columns(tables: readonly Table[], head: string, count: number): Table {
  const table = tables.find(([first]) => first?.[0] === head)
  assert.ok(table, `no table of "${head}"`)
  return table.slice(1).map((row) => row.slice(0, count))
}
