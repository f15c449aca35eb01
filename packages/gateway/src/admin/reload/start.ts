import path from 'node:path'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { revisions } from '../revisions/start.ts'
import { FileWatch } from './file-watch.ts'
import { Reloader } from './reloader.ts'

/** Replaces the rules by those of the file: on request, on publication, and automatically if the file is watched. */
export const reload: Room<Reloader> = {
  name: 'reload',
  needs: [revisions],
  async open(heart, rooms) {
    const { config } = heart
    const reloader = new Reloader(heart, () => rooms.renew(), rooms.ask(revisions))
    await reloader.open()
    const watch = config.watch ? await watchFile(heart, reloader) : undefined
    await follow(heart, reloader)
    return {
      service: reloader,
      warnings() {
        const { waiting: text } = reloader
        return text === undefined ? [] : [{ code: 'reload_waiting', path: path.basename(config.file), text }]
      },
      health(withReasons) {
        const { waiting } = reloader
        return { body: withReasons && waiting !== undefined ? { reload: waiting } : {} }
      },
      close: () => watch?.close(),
    }
  },
}

async function watchFile({ config, host }: Heart, reloader: Reloader): Promise<FileWatch> {
  const watch = new FileWatch(config.file, () => reloader.tighten())
  await watch.start(host.watchEveryMs)
  return watch
}

/** Follows publications. From then on this replica accepts calls. */
async function follow({ replica, servers }: Heart, reloader: Reloader): Promise<void> {
  await replica?.follow({
    reload: (by) => reloader.reload({ by, through: 'publication' }),
    check: (proposed) => reloader.check(proposed),
    restart: (server) => servers.fleet.restart(server),
  })
}
