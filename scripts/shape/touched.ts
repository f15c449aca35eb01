import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from './packages.ts'

/** The calls whose way through the code is counted, each a program beside this file. */
export const TOUCHING = ['view-call', 'gateway-call', 'gateway-call-earlier', 'ai-sdk-step'] as const
export type Touching = (typeof TOUCHING)[number]

export interface Touched {
  readonly files: number
  readonly functions: number
  /** Types declared in our packages that the touched files import. */
  readonly types: number
}

/** One function that ran, as V8's precise coverage names it. */
interface Ran {
  readonly url: string
  readonly functions: number
}

/** Runs a warm call in a process of its own, and returns what of our sources it ran. */
export async function touchedBy(kind: Touching): Promise<Touched> {
  const program = path.join(import.meta.dirname, 'calls', `${kind}.ts`)
  const text = execFileSync(process.execPath, ['--conditions=toolgate-source', program], {
    encoding: 'utf8',
    cwd: ROOT,
  })
  const ran = JSON.parse(text.slice(text.lastIndexOf('\n[') + 1)) as readonly Ran[]
  const files = ran.map(({ url }) => fileURLToPath(url))
  return {
    files: files.length,
    functions: ran.reduce((total, { functions }) => total + functions, 0),
    types: new Set(files.flatMap(typesImportedBy)).size,
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
