//! The body of an answer, read piece by piece: no more than is wanted, packed or unpacked, and never for long without a
//! word from the other side.

use std::io::{self, Write};
use std::time::Duration;

use flate2::write::GzDecoder;
use reqwest::Response;
use tokio::time::timeout;

/// More than any page that is read; of what is longer the beginning is taken. It bounds what comes over the wire as well
/// as what that unpacks to.
pub(super) const MOST: usize = 5 << 20;
/// What is packed may be packed in several pieces, one after the other. Each costs more work than its few bytes do to send, so
/// they are counted, too.
const MEMBERS: usize = 1_000;
/// Between two pieces.
const IDLE: Duration = Duration::from_secs(15);

/// What was read.
#[derive(Debug)]
pub(in crate::native) struct Body {
    pub(in crate::native) bytes: Vec<u8>,
    /// There is more of it.
    pub(in crate::native) is_cut: bool,
}

pub(super) async fn read(mut response: Response, packed: Option<&str>) -> Result<Body, String> {
    let mut unpacking = Unpacking::of(packed)?;
    let mut taken = 0;
    loop {
        let next = timeout(IDLE, response.chunk()).await;
        let next = next.map_err(|_| format!("the server said nothing for {} seconds", IDLE.as_secs()))?;
        let Some(chunk) = next.map_err(|error| format!("the answer broke off: {}", error.without_url()))? else {
            break;
        };
        taken += chunk.len();
        if unpacking.take(&chunk)? == Room::Full || taken > MOST {
            return Ok(Body { bytes: unpacking.taken(), is_cut: true });
        }
    }
    Ok(Body { bytes: unpacking.end()?, is_cut: false })
}

#[derive(Debug, PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

/// We ask for gzip and nothing else, so what comes packed otherwise was sent by somebody who does not listen.
enum Unpacking {
    Plain(Bounded),
    Gzip(Box<Members>),
}

/// The piece that is being unpacked, and how many there were before it.
struct Members {
    decoder: GzDecoder<Bounded>,
    before: usize,
}

impl Members {
    fn take(&mut self, mut chunk: &[u8]) -> io::Result<()> {
        while !chunk.is_empty() {
            match self.decoder.write(chunk)? {
                0 => self.next()?,
                taken => chunk = &chunk[taken..],
            }
        }
        Ok(())
    }

    /// What follows the end of one is the beginning of another.
    fn next(&mut self) -> io::Result<()> {
        self.before += 1;
        self.decoder.try_finish()?;
        let mut bounded = std::mem::take(self.decoder.get_mut());
        bounded.is_full |= self.before == MEMBERS;
        let is_full = bounded.is_full;
        self.decoder = GzDecoder::new(bounded);
        if is_full { Err(io::Error::other("it is full")) } else { Ok(()) }
    }
}

impl Unpacking {
    fn of(packed: Option<&str>) -> Result<Self, String> {
        match packed {
            None | Some("" | "identity") => Ok(Unpacking::Plain(Bounded::default())),
            Some("gzip" | "x-gzip") => {
                let decoder = GzDecoder::new(Bounded::default());
                Ok(Unpacking::Gzip(Box::new(Members { decoder, before: 0 })))
            }
            Some(other) => Err(format!("the answer is packed as `{other}`, which was not asked for")),
        }
    }

    fn take(&mut self, chunk: &[u8]) -> Result<Room, String> {
        let written = match self {
            Unpacking::Plain(bounded) => bounded.write_all(chunk),
            Unpacking::Gzip(members) => members.take(chunk),
        };
        match (written, self.bounded().is_full) {
            (_, true) => Ok(Room::Full),
            (Ok(()), false) => Ok(Room::Left),
            (Err(error), false) => Err(format!("the answer cannot be unpacked: {error}")),
        }
    }

    fn bounded(&mut self) -> &mut Bounded {
        match self {
            Unpacking::Plain(bounded) => bounded,
            Unpacking::Gzip(members) => members.decoder.get_mut(),
        }
    }

    fn taken(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bounded().bytes)
    }

    /// What is still in the decoder comes out now.
    fn end(mut self) -> Result<Vec<u8>, String> {
        if let Unpacking::Gzip(members) = &mut self
            && let Err(error) = members.decoder.try_finish()
            && !members.decoder.get_ref().is_full
        {
            return Err(format!("the answer cannot be unpacked: {error}"));
        }
        Ok(self.taken())
    }
}

/// Takes so much and then refuses, which ends the unpacking in the middle of a piece: a few bytes can unpack to a gigabyte.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let fits = piece.len().min(MOST - self.bytes.len());
        self.bytes.extend_from_slice(&piece[..fits]);
        if fits < piece.len() {
            self.is_full = true;
            return Err(io::Error::other("it is full"));
        }
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_is_packed_is_unpacked_and_no_further_than_wanted() {
        for (content, expected) in [(vec![b'a'; 1000], 1000), (vec![0; MOST], MOST), (vec![0; 4 * MOST], MOST)] {
            let mut unpacking = Unpacking::of(Some("gzip")).unwrap();
            let mut room = Room::Left;
            for piece in packed(&content).chunks(1 << 16) {
                room = unpacking.take(piece).unwrap();
                if room == Room::Full {
                    break;
                }
            }
            assert_eq!(room == Room::Full, content.len() > MOST);
            let bytes = if room == Room::Full { unpacking.taken() } else { unpacking.end().unwrap() };
            assert_eq!(bytes.len(), expected);
            assert!(bytes.capacity() <= 4 * MOST);
        }
    }

    #[test]
    fn pieces_without_end_are_cut() {
        let hollow = packed(b"").repeat(MEMBERS * 2);
        let mut unpacking = Unpacking::of(Some("gzip")).unwrap();
        unpacking.take(&packed(b"some words")).unwrap();
        let taken = hollow.chunks(1 << 12).take_while(|piece| unpacking.take(piece).unwrap() == Room::Left).count();
        assert!(taken < hollow.len() >> 12, "all of it was unpacked");
        assert_eq!(unpacking.taken(), b"some words");
        let mut some = Unpacking::of(Some("gzip")).unwrap();
        assert_eq!(some.take(&packed(b"a").repeat(MEMBERS)).unwrap(), Room::Left);
        assert_eq!(some.end().unwrap().len(), MEMBERS);
    }

    #[test]
    fn several_pieces_are_one_and_half_of_one_is_an_error() {
        let both = [packed(b"one "), packed(b"two")].concat();
        let mut unpacking = Unpacking::of(Some("gzip")).unwrap();
        unpacking.take(&both).unwrap();
        assert_eq!(unpacking.end().unwrap(), b"one two");
        let mut half = Unpacking::of(Some("gzip")).unwrap();
        let whole = packed(&(0..=255).collect::<Vec<u8>>().repeat(9));
        half.take(&whole[..whole.len() / 2]).unwrap();
        assert!(half.end().unwrap_err().contains("cannot be unpacked"));
        let mut none = Unpacking::of(Some("gzip")).unwrap();
        assert!(none.take(b"<html>this is no gzip at all</html>").unwrap_err().contains("cannot be unpacked"));
        assert!(Unpacking::of(Some("br")).is_err_and(|why| why.contains("`br`, which was not asked for")));
    }
}
