import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from './packages.ts'

/** The calls whose way through the code is counted, each a program beside this file. */
export const TOUCHING = ['view-call', 'gateway-call', 'gateway-call-earlier', 'ai-sdk-step'] as const
export type Touching = (typeof TOUCHING)[number]

/** A file that a call enters: with how many functions, and how many lines these have. */
export interface TouchedFile {
  /** From the root of the repository. */
  readonly path: string
  readonly functions: number
  readonly lines: number
}

export interface Touched {
  readonly files: readonly TouchedFile[]
  readonly functions: number
  /** Types declared in our packages that the touched files import. */
  readonly types: number
}

/** One function that ran, as V8's precise coverage names it. */
interface Ran {
  readonly url: string
  readonly functions: number
  readonly lines: number
}

/** Whether a call does next to nothing in a file. The others are the spine of the call. */
export function isPassedThrough({ functions, lines }: TouchedFile): boolean {
  return functions <= 2 && lines <= 12
}

/** Runs a warm call in a process of its own, and returns what of our sources it ran. */
export async function touchedBy(kind: Touching): Promise<Touched> {
  const program = path.join(import.meta.dirname, 'calls', `${kind}.ts`)
  const text = execFileSync(process.execPath, ['--conditions=toolgate-source', program], {
    encoding: 'utf8',
    cwd: ROOT,
  })
  const ran = JSON.parse(text.slice(text.lastIndexOf('\n[') + 1)) as readonly Ran[]
  const files = ran.map(({ url, functions, lines }) => ({
    path: path.relative(ROOT, fileURLToPath(url)),
    functions,
    lines,
  }))
  return {
    files,
    functions: files.reduce((total, { functions }) => total + functions, 0),
    types: new Set(files.flatMap((file) => typesImportedBy(path.join(ROOT, file.path)))).size,
  }
}

const IMPORT = /^import\s+(type\s)?\{([^}]*)\}\s+from\s+'(\.[^']*|@toolgate\/[^']*)'/gm

function typesImportedBy(file: string): readonly string[] {
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)].flatMap(([, all, names = '']) =>
    names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '' && (all !== undefined || name.startsWith('type ')))
      .map((name) => name.replace(/^type /, '').replace(/ as .*/, '')),
  )
}
