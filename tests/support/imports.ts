import { readFileSync } from 'node:fs'
import path from 'node:path'

const STATEMENT = /^(?:import|export)\s+(?:(type)\s)?(?:([^;'"]*?)\s*from\s*)?['"]([^'"]+)['"]/gm
const CALL = /^(?!\s*(?:\*|\/\/)).*?\b(import|require)\(\s*['"]([^'"]+)['"]/gm

export interface Import {
  readonly from: string
  readonly specifier: string
  readonly typeOnly: boolean
  /** The names that it takes, as the other file exports them. Absent for all of them. */
  readonly names?: readonly string[]
  /** A call of `import` or `require`. */
  readonly dynamic: boolean
}

/** Reads what a source imports, from its statements and calls. Files are named from the repository's root. */
export function readImports(root: string, from: string): Import[] {
  const text = readFileSync(path.join(root, from), 'utf8')
  const statements = [...text.matchAll(STATEMENT)].map(([, type, names = '', specifier = '']) => ({
    from,
    specifier,
    typeOnly: type !== undefined || onlyTypes(names),
    dynamic: false,
    ...namesIn(names),
  }))
  const calls = [...text.matchAll(CALL)].map(([, , specifier = '']) => ({
    from,
    specifier,
    typeOnly: false,
    dynamic: true,
  }))
  return [...statements, ...calls]
}

/** The file that an import is of, or `undefined` where it is of a package. */
export function targetFile({ from, specifier }: Import): string | undefined {
  return specifier.startsWith('.') ? path.posix.join(path.posix.dirname(from), specifier) : undefined
}

function namesIn(clause: string): { names: readonly string[] } | object {
  const listed = /\{([^}]*)\}$/.exec(clause.trim())?.[1]
  return listed === undefined
    ? {}
    : {
        names: listed.split(',').map((one) =>
          one
            .trim()
            .replace(/^type /, '')
            .replace(/ as .*/s, ''),
        ),
      }
}

/** `{ type A, type B }` imports no more than `type { A, B }` does. */
function onlyTypes(names: string): boolean {
  const listed = /^\{([^}]*)\}$/.exec(names.trim())?.[1]?.split(',')
  const given = listed?.map((name) => name.trim()).filter((name) => name !== '') ?? []
  return given.length > 0 && given.every((name) => name.startsWith('type '))
}
