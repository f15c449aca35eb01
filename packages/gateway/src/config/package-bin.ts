import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

/** Where the command of an installed package is, or why there is none. */
export type PackageBin = { readonly file: string } | { readonly at: 'package' | 'bin'; readonly problem: string }

/**
 * Finds the file behind a command of an installed npm package.
 *
 * It is looked for from each of `from` in turn (absolute file names), as Node looks for modules.
 * `package.json` is read from the disk, because `exports` may hide it from `require`.
 */
export function findPackageBin(name: string, bin: string | undefined, from: readonly string[]): PackageBin {
  const folder = findPackage(name, from)
  if (!folder)
    return {
      at: 'package',
      problem: `the package "${name}" is not installed; install it with npm beside the configuration`,
    }
  const bins = readBins(path.join(folder, 'package.json'), name)
  if (bins.size === 0) return { at: 'package', problem: `the package "${name}" has no command` }
  const names = [...bins.keys()].join(', ')
  const file = bin !== undefined ? bins.get(bin) : bins.size === 1 ? [...bins.values()][0] : bins.get(unscoped(name))
  if (file !== undefined) return { file: path.join(folder, file) }
  return bin === undefined
    ? { at: 'package', problem: `the package "${name}" has several commands, choose one with "bin": ${names}` }
    : { at: 'bin', problem: `found "${bin}", expected a command of the package "${name}": ${names}` }
}

function findPackage(name: string, from: readonly string[]): string | undefined {
  for (const start of from) {
    for (const modules of createRequire(start).resolve.paths(name) ?? []) {
      const folder = path.join(modules, name)
      if (readJson(path.join(folder, 'package.json'))) return folder
    }
  }
  return undefined
}

function readBins(file: string, name: string): ReadonlyMap<string, string> {
  const bin: unknown = readJson(file)?.['bin']
  if (typeof bin === 'string') return new Map([[unscoped(name), bin]])
  if (typeof bin !== 'object' || bin === null) return new Map()
  return new Map(Object.entries(bin).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

function readJson(file: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function unscoped(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}
