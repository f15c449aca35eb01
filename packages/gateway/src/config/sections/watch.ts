import * as z from 'zod'
import { has } from '../reading.ts'
import { plain, type Section } from '../section.ts'

const watchSchema = z
  .boolean()
  .describe(
    'Applies a change of this file by itself if it only tightens. Others wait for "toolgate reload". Default: false.',
  )

const written = plain(watchSchema)

export const watch: Section<boolean> = {
  ...written,
  read(reading, key) {
    const value = written.read(reading, key)
    if (value === true && has(reading.source, ['stores']))
      reading.source.report([key], 'found true with "stores", expected false, as replicas run what is published')
    return value
  },
}
