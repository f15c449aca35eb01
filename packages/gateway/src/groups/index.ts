export { createMonitor, type Monitor, type MonitorDeps } from './monitor.ts'
export { probeTcp, type ProbeAnswer, type ProbeOptions, type TcpProbe, type TcpTarget } from './tcp-probe.ts'
