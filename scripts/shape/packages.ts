import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'rolldown/utils'
import { readImports, targetFile } from '../../tests/support/imports.ts'

export const ROOT = path.resolve(import.meta.dirname, '../..')

/** What is counted of one package: its sources without tests, fixtures and what only tests use. */
export interface PackageShape {
  readonly name: string
  readonly files: number
  /** Lines that are neither blank nor begin as a comment does. */
  readonly lines: number
  readonly functions: readonly FunctionShape[]
  /** `x as T`, but for `as const`. */
  readonly casts: number
  /** Names of its main entry, or of all its entries where it has no main one. */
  readonly names: number
  /** Groups of files that import each other in a circle. */
  readonly cycles: number
  /** The `…Deps`, `…Options` and `…Parts` types: what is handed over as one argument. */
  readonly handed: readonly HandedType[]
}

export interface HandedType {
  readonly name: string
  readonly members: number
}

export interface FunctionShape {
  readonly name: string
  readonly lines: number
}

export function packageNames(): readonly string[] {
  return globSync('packages/*/package.json', { cwd: ROOT })
    .map((file) => path.basename(path.dirname(file)))
    .toSorted()
}

/** Returns the sources of a folder, named from the repository's root. */
export function sourcesOf(folder: string): readonly string[] {
  return globSync(`${folder}/**/*.{ts,tsx,js}`, {
    cwd: ROOT,
    exclude: (name) => name === 'node_modules' || name === 'dist',
  })
    .map((file) => file.replaceAll(path.sep, '/'))
    .filter((file) => !/\.test(-d)?\.tsx?$|\/testing\/|\/test\//.test(file))
    .toSorted()
}

const NO_CODE = /^\s*($|\/\/|\/?\*)/

export function readPackage(name: string): PackageShape {
  const files = sourcesOf(`packages/${name}/src`)
  const texts = files.map((file) => readFileSync(path.join(ROOT, file), 'utf8'))
  const parsed = files.map((file, i) => readSource(file, texts[i] ?? ''))
  return {
    name,
    files: files.length,
    lines: texts.flatMap((text) => text.split('\n')).filter((line) => !NO_CODE.test(line)).length,
    functions: parsed.flatMap(({ functions }) => functions),
    casts: parsed.reduce((total, { casts }) => total + casts, 0),
    names: namesOf(name),
    cycles: countCycles(importsAmong(files)),
    handed: parsed.flatMap(({ handed }) => handed),
  }
}

type SourceShape = Pick<PackageShape, 'functions' | 'casts' | 'handed'>

interface AstNode {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

const FUNCTIONS: ReadonlySet<string> = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

function readSource(file: string, text: string): SourceShape {
  const functions: FunctionShape[] = []
  const handed: HandedType[] = []
  let casts = 0
  const lineAt = (offset: number): number => text.slice(0, offset).split('\n').length
  const visit = (value: unknown, name: string): void => {
    if (Array.isArray(value)) for (const one of value) visit(one, name)
    if (!isNode(value)) return
    if (value.type === 'TSAsExpression' && text.slice(value.start, value.end).match(/\bas const$/) === null) casts++
    if (FUNCTIONS.has(value.type))
      functions.push({ name: nameOf(value) ?? name, lines: lineAt(value.end) - lineAt(value.start) + 1 })
    if (TYPES.has(value.type) && /(?:Deps|Options|Parts)$/.test(nameOf(value) ?? ''))
      handed.push({ name: nameOf(value) ?? '', members: countMembers(value) })
    const inner = nameOf(value) ?? name
    for (const key of Object.keys(value)) if (key !== 'parent') visit(value[key], inner)
  }
  visit(parseSync(file, text).program, path.basename(file))
  return { functions, casts, handed }
}

const TYPES: ReadonlySet<string> = new Set(['TSInterfaceDeclaration', 'TSTypeAliasDeclaration'])
const LITERALS: ReadonlySet<string> = new Set(['TSInterfaceBody', 'TSTypeLiteral'])

/** Counts the members that a type declares itself, not those that it extends or picks, nor those of its members. */
function countMembers({ body, typeAnnotation }: AstNode): number {
  const parts = isNode(typeAnnotation) && typeAnnotation.type === 'TSIntersectionType' ? typeAnnotation['types'] : []
  return [body, typeAnnotation, ...(parts as readonly unknown[])]
    .filter((one) => isNode(one) && LITERALS.has(one.type))
    .flatMap((one) => (one as { body?: unknown[] }).body ?? (one as { members?: unknown[] }).members ?? []).length
}

function isNode(value: unknown): value is AstNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

function nameOf({ id, key }: AstNode): string | undefined {
  const named = isNode(id) ? id : isNode(key) ? key : undefined
  return typeof named?.['name'] === 'string' ? named['name'] : undefined
}

function namesOf(name: string): number {
  const all = JSON.parse(readFileSync(path.join(ROOT, 'tests/public-names.json'), 'utf8')) as Record<string, string[]>
  const own = Object.entries(all).filter(
    ([entry]) => entry === `@toolgate/${name}` || entry.startsWith(`@toolgate/${name}/`),
  )
  const main = own.filter(([entry]) => entry === `@toolgate/${name}`)
  return (main.length > 0 ? main : own).reduce((total, [, names]) => total + names.length, 0)
}

/** Returns which files of a list import which others. Types count: they are read too. */
export function importsAmong(files: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const known = new Set(files)
  return new Map(
    files.map((file) => [
      file,
      readImports(ROOT, file).flatMap((one) => {
        const target = targetFile(one)
        return target !== undefined && known.has(target) && target !== file ? [target] : []
      }),
    ]),
  )
}

/** Counts the strongly connected parts of more than one node (Tarjan 1972). */
export function countCycles(edges: ReadonlyMap<string, readonly string[]>): number {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  let cycles = 0
  const visit = (node: string): void => {
    index.set(node, index.size)
    low.set(node, index.size - 1)
    stack.push(node)
    for (const next of edges.get(node) ?? []) {
      if (!index.has(next)) visit(next)
      if (stack.includes(next)) low.set(node, Math.min(low.get(node) as number, low.get(next) as number))
    }
    if (low.get(node) !== index.get(node)) return
    const part = stack.splice(stack.indexOf(node))
    if (part.length > 1) cycles++
  }
  for (const node of edges.keys()) if (!index.has(node)) visit(node)
  return cycles
}
