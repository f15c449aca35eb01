import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'

/** The examples of the guide: each block of TypeScript that imports something is a program, which is compiled and run. */
const ROOT = path.resolve(import.meta.dirname, '..')
const BLOCK = /^```ts\n(import .*?)^```$/gms

const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-guide-'))
symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
const programs = globSync('docs/guide/*.md', { cwd: ROOT }).toSorted().flatMap(programsOf)

describe('the examples of the guide', () => {
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const { name, file } of programs) {
    it(`${name} runs`, () => import(pathToFileURL(file).href))
  }

  it('are all compiled', () => {
    const { compilerOptions } = JSON.parse(readFileSync(path.join(ROOT, 'tsconfig.check.json'), 'utf8')) as {
      compilerOptions: object
    }
    const config = {
      extends: path.join(ROOT, 'tsconfig.base.json'),
      // An example may leave a result unused.
      compilerOptions: {
        ...compilerOptions,
        noUnusedLocals: false,
        typeRoots: [path.join(ROOT, 'node_modules/@types')],
      },
      files: programs.map(({ file }) => file),
    }
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config))
    const { stdout, status } = spawnSync(path.join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { encoding: 'utf8' })
    assert.equal(status, 0, stdout)
  })
})

function programsOf(guide: string): readonly { name: string; file: string }[] {
  const text = readFileSync(path.join(ROOT, guide), 'utf8')
  return [...text.matchAll(BLOCK)].map(([, program = ''], i) => {
    const name = `${path.basename(guide, '.md')}-${i + 1}`
    const file = path.join(folder, `${name}.ts`)
    writeFileSync(file, program)
    return { name, file }
  })
}
