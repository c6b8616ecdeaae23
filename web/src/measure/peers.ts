// The page's part in data channels: RTCPeerConnection exists on a page's own thread only. It is made here for the runner, and the
// channel is handed over to it where the browser can do that (Chromium can, others not yet); elsewhere the flow runs here, beside
// whatever the page draws.

import { answerOf, endOf, type ChannelEnd } from "../pure/channelEnd";
import { runFlow, type FlowOrder, type FlowProgress, type FlowResult, type RunningFlow } from "./flow";

/** What the runner asks of the page. */
export type PeerRequest =
  | { say: "peer"; ask: "open"; peer: number }
  | { say: "peer"; ask: "answer"; peer: number; end: ChannelEnd; address: string; port: number }
  | { say: "peer"; ask: "flow"; peer: number; order: FlowOrder }
  | { say: "peer"; ask: "stop"; peer: number }
  | { say: "peer"; ask: "close"; peer: number };

/** What the page answers. */
export type PeerAnswer = { say: "peer"; peer: number } & (
  | { told: "channel"; channel: RTCDataChannel }
  | { told: "offer"; end: ChannelEnd }
  | { told: "open" }
  | { told: "failed"; reason: PeerTrouble }
  | { told: "progress"; progress: FlowProgress }
  | { told: "flow"; result: FlowResult }
  | { told: "closed"; discarded: number }
);

/** Without WebRTC in the browser, without its will, or without an answer from the server. */
export type PeerTrouble = "absent" | "refused" | "blocked";

type Post = (answer: PeerAnswer, handed?: Transferable[]) => void;

export class Peers {
  private readonly peers = new Map<number, Peer>();

  constructor(private readonly post: Post) {}

  heard(request: PeerRequest): void {
    const { peer: number } = request;
    if (request.ask === "open") {
      if (typeof RTCPeerConnection === "undefined") return this.post({ say: "peer", peer: number, told: "failed", reason: "absent" });
      const peer = new Peer(number, this.post);
      this.peers.set(number, peer);
      void peer.offer();
      return undefined;
    }
    const peer = this.peers.get(number);
    if (request.ask === "answer") void peer?.answer(answerOf(request.end, request.address, request.port));
    else if (request.ask === "flow") void peer?.run(request.order);
    else if (request.ask === "stop") peer?.stop();
    else {
      this.peers.delete(number);
      void peer?.close();
    }
  }

  closeAll(): void {
    for (const peer of this.peers.values()) void peer.close();
    this.peers.clear();
  }
}

class Peer {
  private readonly connection = new RTCPeerConnection({ iceServers: [] });
  private channel: RTCDataChannel | undefined;
  private flow: RunningFlow | undefined;

  constructor(
    private readonly number: number,
    private readonly post: Post,
  ) {
    this.connection.onconnectionstatechange = () => {
      if (this.connection.connectionState === "failed") this.failed("blocked");
    };
  }

  /** A channel can only be handed over in the turn in which it was made, before there is an offer. */
  async offer(): Promise<void> {
    try {
      this.channel = this.connection.createDataChannel("netaware", { negotiated: true, id: 0, ordered: false, maxRetransmits: 0 });
      const handed = this.handOver(this.channel);
      const offer = await this.connection.createOffer();
      await this.connection.setLocalDescription(offer);
      const end = endOf(offer.sdp ?? "");
      if (!end) return this.failed("refused");
      if (!handed) this.channel.onopen = () => this.post({ say: "peer", peer: this.number, told: "open" });
      this.post({ say: "peer", peer: this.number, told: "offer", end });
    } catch {
      this.failed("refused");
    }
    return undefined;
  }

  async answer(sdp: string): Promise<void> {
    try {
      await this.connection.setRemoteDescription({ type: "answer", sdp });
    } catch {
      this.failed("refused");
    }
  }

  async run(order: FlowOrder): Promise<void> {
    if (!this.channel) return this.failed("refused");
    this.flow = runFlow(this.channel, order, (progress) => this.post({ say: "peer", peer: this.number, told: "progress", progress }));
    this.post({ say: "peer", peer: this.number, told: "flow", result: await this.flow.result });
  }

  stop(): void {
    this.flow?.stop();
  }

  /** Tells what the browser itself dropped on the way out: such packets look like losses and are none of the network. */
  async close(): Promise<void> {
    const discarded = await this.discarded().catch(() => 0);
    this.connection.close();
    this.post({ say: "peer", peer: this.number, told: "closed", discarded });
  }

  private handOver(channel: RTCDataChannel): boolean {
    try {
      const handed = channel as unknown as Transferable;
      this.post({ say: "peer", peer: this.number, told: "channel", channel }, [handed]);
      return true;
    } catch {
      return false;
    }
  }

  private async discarded(): Promise<number> {
    let packets = 0;
    (await this.connection.getStats()).forEach((each: { type?: string; packetsDiscardedOnSend?: number }) => {
      if (each.type === "candidate-pair") packets += each.packetsDiscardedOnSend ?? 0;
    });
    return packets;
  }

  private failed(reason: PeerTrouble): void {
    this.post({ say: "peer", peer: this.number, told: "failed", reason });
  }
}
