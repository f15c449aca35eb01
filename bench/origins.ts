import { createOriginIndex } from '@toolgate/core/decide'
import { digits, heapMb, measure, printFigures, printTable } from './lib.ts'

/** Words, names and addresses, as mails, files and lists of people hold them. */
const LINE = (i: number) =>
  `${i}. Meeting with ${['Amy', 'Bob', 'Eve', 'Joe'][i % 4]} Lee <person${i * 7919}@example${i % 97}.com> on 2026-11-${i % 28}, see https://site${i % 89}.org/report/${i * 31}.\n`
const TEXT = Array.from({ length: 1200 }, (_, i) => LINE(i))
  .join('')
  .slice(0, 100_000)
const WORDS =
  'Please write to Amy Lee (amy.lee@example.org) and pay DE89 3704 0044 0532 0130 00 before Monday. '.repeat(5)

const index = createOriginIndex()
index.addWords(WORDS)
index.addOutput('trusted', { contacts: TEXT.slice(0, 10_000).split('\n') })
index.addOutput('untrusted', { content: [{ type: 'text', text: TEXT }] })
if (index.full) throw new Error('the index is full')

const NEW = ['somebody.new@other.net', 'https://nowhere.net/path?q=1', 'DE02120300000000202051']
const SEEN = ['person7919@example1.com', 'person4750000@example3.com', 'https://site5.org/report/18600']
const OWN = ['amy.lee@example.org', 'DE89370400440532013000', 'amy.lee@example.org']
const lower = TEXT.toLowerCase()
let sink = 0

const origins = (values: readonly string[]) => (count: number) => {
  for (let i = 0; i < count; i++) for (const value of values) sink += index.originOf(value).length
}

printFigures(
  'Origins of three fields against 100 kB of text seen',
  await measure([
    {
      name: 'three plain scans',
      run(count) {
        for (let i = 0; i < count; i++) for (const value of NEW) sink += lower.includes(value) ? 1 : 0
      },
    },
    { name: 'the model made them', run: origins(NEW), budget: '≤ 30 µs' },
    { name: 'untrusted outputs had them', run: origins(SEEN), budget: '≤ 30 µs' },
    { name: 'the user named them', run: origins(OWN), budget: '≤ 30 µs' },
    {
      name: 'an output of 100 kB is taken in',
      run(count) {
        for (let i = 0; i < count; i++) sink += createOriginIndex().addOutput('untrusted', TEXT).length
      },
    },
  ]),
  'three plain scans',
)

const before = await heapMb()
const full = Array.from({ length: 100 }, (_, n) => {
  const each = createOriginIndex()
  for (let i = 0; !each.full && i < 5000; i++) each.addOutput('untrusted', `${n} ${LINE(i)} 漢`)
  return each
})
const kb = ((await heapMb()) - before) * 10
printTable(
  'Memory of a full index of origins',
  ['what', 'kB', 'budget'],
  [
    ['heap', digits(kb), '≤ 256'],
    ['its own count', digits((full[0]?.size ?? 0) / 1024), '≤ 256'],
  ],
)
if (sink === 0) throw new Error('nothing was asked')
