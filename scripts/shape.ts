// Prints the shape of the code: `npm run shape`. Sizes, functions, casts, names, cycles, and what one call touches.
// `npm run shape -- view-call` prints the files that a call enters. The calls are in `shape/calls/`.
import { printTable } from '../bench/lib.ts'
import { packageNames, readPackage } from './shape/packages.ts'
import { layersOf } from './shape/rooms.ts'
import { isPassedThrough, touchedBy, TOUCHING } from './shape/touched.ts'

const asked = TOUCHING.find((kind) => kind === process.argv[2])
if (asked) {
  const { files } = await touchedBy(asked)
  const listed = files.map((file) => [
    file.path,
    String(file.functions),
    String(file.lines),
    isPassedThrough(file) ? 'yes' : '',
  ])
  printTable(`Entered by one ${asked}`, ['file', 'functions', 'lines', 'passed through'], listed)
  process.exit()
}

const HEAD = [
  'package',
  'files',
  'code lines',
  'function p90',
  'longest',
  '> 60 lines',
  'casts / 1,000',
  'names',
  'cycles',
]

const packages = packageNames().map(readPackage)
const rows = packages.map((one) => [
  one.name,
  String(one.files),
  String(one.lines),
  String(
    quantile(
      one.functions.map(({ lines }) => lines),
      0.9,
    ),
  ),
  longest(one.functions),
  percent(one.functions.filter(({ lines }) => lines > 60).length / one.functions.length),
  ((one.casts / one.lines) * 1000).toFixed(1),
  String(one.names),
  String(one.cycles),
])
const sum = (of: (one: (typeof packages)[number]) => number): number =>
  packages.reduce((total, one) => total + of(one), 0)
const functions = packages.flatMap((one) => one.functions)
rows.push([
  'all',
  String(sum(({ files }) => files)),
  String(sum(({ lines }) => lines)),
  String(
    quantile(
      functions.map(({ lines }) => lines),
      0.9,
    ),
  ),
  longest(functions),
  percent(functions.filter(({ lines }) => lines > 60).length / functions.length),
  ((sum(({ casts }) => casts) / sum(({ lines }) => lines)) * 1000).toFixed(1),
  String(sum(({ names }) => names)),
  String(sum(({ cycles }) => cycles)),
])
printTable('Shape of the sources, without tests', HEAD, rows)

const handed = packages.flatMap((one) => one.handed)
printTable(
  'Types that hand over several values',
  ['what', 'count'],
  [
    ['…Deps, …Options and …Parts types', String(handed.length)],
    ['their members', String(handed.reduce((total, { members }) => total + members, 0))],
  ],
)

const core = layersOf('packages/core/src')
printTable(
  'Inside core',
  ['what', 'count'],
  [
    ['rooms: folders and root files', String(core.rooms)],
    ['floors: the longest chain of rooms that import each other', String(core.floors)],
  ],
)

const touched: string[][] = []
for (const kind of TOUCHING) {
  const { files, functions: called, types } = await touchedBy(kind)
  const passed = files.filter(isPassedThrough).length
  touched.push([kind, String(files.length), String(called), String(passed), String(types)])
}
printTable(
  'Touched by one warm call',
  ['call', 'files', 'functions', 'passed through', 'types of ours that these files import'],
  touched,
)

function longest(all: readonly { readonly name: string; readonly lines: number }[]): string {
  const most = all.reduce((a, b) => (b.lines > a.lines ? b : a), { name: '', lines: 0 })
  return `${most.lines} ${most.name}`
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}
