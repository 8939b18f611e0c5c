//! The other side of interop tests: rust-libp2p's TLS transport as a server that echoes and as a client that has itself echoed.
//!
//!     rust-libp2p server KEY            prints its address and peer ID, then the peer ID or the error of each connection;
//!                                       ends with its standard input
//!     rust-libp2p client KEY ADDR PEER  fails unless the server at ADDR is PEER and echoes
//!
//! KEY is ed25519, ecdsa or secp256k1.

use std::io::{Error, Read};
use std::net::{TcpListener, TcpStream};
use std::{env, process, thread};

use async_io::Async;
use futures::executor::block_on;
use futures::io::{AsyncReadExt, AsyncWriteExt};
use libp2p_core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo};
use libp2p_identity::{Keypair, PeerId};
use libp2p_tls::{Config, TlsStream};

type Stream = TlsStream<Async<TcpStream>>;

fn keypair(kind: &str) -> Keypair {
    match kind {
        "ed25519" => Keypair::generate_ed25519(),
        "ecdsa" => Keypair::generate_ecdsa(),
        "secp256k1" => Keypair::generate_secp256k1(),
        _ => usage(),
    }
}

fn usage() -> ! {
    eprintln!("usage: rust-libp2p server KEY | client KEY ADDR PEER");
    process::exit(2)
}

async fn echo(mut stream: Stream) -> Result<(), Error> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return stream.close().await,
            n => {
                stream.write_all(&buffer[..n]).await?;
                stream.flush().await?
            }
        }
    }
}

fn serve(key: Keypair) -> Result<(), Error> {
    let config = Config::new(&key).map_err(Error::other)?;
    let protocol = config.protocol_info().next().unwrap_or_default();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{} {} {}", listener.local_addr()?, key.public().to_peer_id(), protocol);
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        process::exit(0)
    });
    for socket in listener.incoming() {
        let (socket, config) = (Async::new(socket?)?, config.clone());
        thread::spawn(move || {
            block_on(async {
                match config.upgrade_inbound(socket, protocol).await {
                    Err(err) => println!("refused: {err:?}"),
                    Ok((peer, stream)) => match echo(stream).await {
                        Ok(()) => println!("{peer}"),
                        Err(err) => println!("{peer}: {err:?}"),
                    },
                }
            })
        });
    }
    Ok(())
}

async fn call(key: Keypair, addr: &str, want: PeerId) -> Result<(), Error> {
    let config = Config::new(&key).map_err(Error::other)?;
    let protocol = config.protocol_info().next().unwrap_or_default();
    let socket = Async::new(TcpStream::connect(addr)?)?;
    let (peer, mut stream) = config.upgrade_outbound(socket, protocol).await.map_err(Error::other)?;
    if peer != want {
        return Err(Error::other(format!("the server is {peer}, not {want}")));
    }
    for round in 0..64u32 {
        let sent: Vec<u8> = (0..16 * 1024u32).map(|i| (i ^ round) as u8).collect();
        stream.write_all(&sent).await?;
        stream.flush().await?;
        let mut got = vec![0; sent.len()];
        stream.read_exact(&mut got).await?;
        if got != sent {
            return Err(Error::other(format!("block {round} came back changed")));
        }
    }
    stream.close().await?;
    println!("{}", key.public().to_peer_id());
    Ok(())
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["server", key] => serve(keypair(key)),
        ["client", key, addr, peer] => match peer.parse() {
            Ok(peer) => block_on(call(keypair(key), addr, peer)),
            Err(_) => usage(),
        },
        _ => usage(),
    };
    if let Err(err) = done {
        eprintln!("rust-libp2p: {err}");
        process::exit(1)
    }
}
